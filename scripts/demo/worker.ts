/**
 * A process that sends mails and invoices and builds the projection: `worker.ts <place> <name>`.
 *
 * @module
 */

import type { StoreEvent, WakeReceiver } from "../../mod.ts";
import { Hold } from "./hold.ts";
import { delay, HOLD, now, PING, readLines, say } from "./messages.ts";
import { openShop } from "./open.ts";
import { CONSUMER, project } from "./projection.ts";
import { Sender, type Sent } from "./sent.ts";
import { type Place, readPlace } from "./shop.ts";

/** How many mails, and how many invoices, a worker sends at once. */
const CONCURRENCY = 4;

/** Milliseconds it takes to send one. */
const SENDING = 5;

/** Milliseconds that what is being sent gets at the end. */
const DRAIN = 2_000;

/** Sends one kind of thing and notes how it came to it. */
class Desk {
  readonly #sender: Sender;
  readonly #kind: Sent["kind"];
  readonly #worker: string;
  #running = 0;
  #idleSince: number = now();

  constructor(sender: Sender, kind: Sent["kind"], worker: string) {
    this.#sender = sender;
    this.#kind = kind;
    this.#worker = worker;
  }

  /** Sends what a job asks for. With `hold`, what happens before and after is up to that. */
  async send(
    { order, to }: { readonly order: string; readonly to: string },
    job: { readonly id: number; readonly attempt: number },
    hold?: Hold,
  ): Promise<void> {
    const sent: Sent = {
      kind: this.#kind,
      order,
      to,
      job: job.id,
      attempt: job.attempt,
      worker: this.#worker,
      startedAt: now(),
      ...(this.#running === 0 && { idleSince: this.#idleSince }),
    };
    this.#running++;
    await delay(SENDING);
    if (hold?.isOn === true) return await hold.keep(job.id, () => this.#sender.send(sent));
    this.#sender.send(sent);
    this.#running--;
    this.#idleSince = now();
  }
}

/** Works until standard input ends. */
async function work(place: Place, name: string): Promise<void> {
  const shop = await openShop(place);
  shop.store.onEvent(reportTrouble);
  const sender = new Sender(place.folder, name);
  const mailDesk = new Desk(sender, "mail", name);
  const invoiceDesk = new Desk(sender, "invoice", name);
  const hold = new Hold(CONCURRENCY);
  let lostRaces = 0;

  const receiver = await shop.placed.subscribe(CONSUMER);
  const projection = project(shop, receiver, {
    lostRace: () => void lostRaces++,
    beforeCommit: () => hold.keepTransaction(),
  });
  const options = { concurrency: CONCURRENCY, worker: name };
  const mails = shop.mails.run((mail, job) => mailDesk.send(mail, job), options);
  const invoices = shop.invoices.work((job) => invoiceDesk.send(job.payload, job, hold), options);
  const wakes = await shop.store.listen(PING);
  const answering = answerWakes(wakes);
  say({ type: "ready" });

  for await (const command of readLines(Deno.stdin.readable)) {
    if (command !== HOLD) continue;
    // Mails first: their claims would outlive the demo.
    await mails.stop();
    hold.start();
  }
  await Promise.all([mails.stop({ drain: DRAIN }), invoices.stop({ drain: DRAIN })]);
  await Promise.all([receiver.close(), wakes.close()]);
  await Promise.all([projection, answering]);
  await shop.store.close();
  say({ type: "stopped", lostRaces });
}

/** Tells of every wake. */
async function answerWakes(wakes: WakeReceiver): Promise<void> {
  for await (const _ of wakes) say({ type: "woken", at: now() });
}

/** Tells what an application would write to its log. */
function reportTrouble(event: StoreEvent): void {
  switch (event.type) {
    case "error":
      return say({ type: "trouble", text: event.error.message });
    case "degraded":
      return say({ type: "trouble", text: event.reason });
    case "lease-lost":
      return say({
        type: "trouble",
        text: `the claim of job ${event.id} of "${event.queue}" was lost`,
      });
  }
}

if (import.meta.main) {
  const { place, argument } = readPlace(Deno.args);
  await work(place, argument);
}
