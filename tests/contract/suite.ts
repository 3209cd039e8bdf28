import { argumentMistakes } from "./arguments.ts";
import { closing } from "./closing.ts";
import { codec } from "./codec.ts";
import { deliveries } from "./deliveries.ts";
import { distinctNames } from "./distinct_names.ts";
import { errors } from "./errors.ts";
import { eventReceivers } from "./event_receivers.ts";
import { foreignHandles } from "./foreign_handles.ts";
import { joined } from "./joined.ts";
import { lifecycle } from "./lifecycle.ts";
import { locks } from "./locks.ts";
import { names } from "./names.ts";
import { outbox } from "./outbox.ts";
import { outboxRun } from "./outbox_run.ts";
import { payloads } from "./payloads.ts";
import { polling } from "./polling.ts";
import { projections } from "./projections.ts";
import { queueClaims } from "./queue_claims.ts";
import { queueDead } from "./queue_dead.ts";
import { queueErrors } from "./queue_errors.ts";
import { queueEvents } from "./queue_events.ts";
import { queueExpiry } from "./queue_expiry.ts";
import { queueLookups } from "./queue_lookups.ts";
import { queueOrder } from "./queue_order.ts";
import { queueRaces } from "./queue_races.ts";
import { queueRetries } from "./queue_retries.ts";
import { queueSignals } from "./queue_signals.ts";
import { queueStamps } from "./queue_stamps.ts";
import { queueStates } from "./queue_states.ts";
import { queueTx } from "./queue_tx.ts";
import { schemas } from "./schemas.ts";
import { stamps } from "./stamps.ts";
import { streamOffsets } from "./stream_offsets.ts";
import { streams } from "./streams.ts";
import { subscriptions } from "./subscriptions.ts";
import { transactions } from "./transactions.ts";
import { txBeside } from "./tx_beside.ts";
import { txFailures } from "./tx_failures.ts";
import { txRefusals } from "./tx_refusals.ts";
import { txScope } from "./tx_scope.ts";
import { txTurns } from "./tx_turns.ts";
import { wakeReceivers } from "./wake_receivers.ts";
import { wakes } from "./wakes.ts";
import { work } from "./work.ts";
import { workOutages } from "./work_outages.ts";
import { workStop } from "./work_stop.ts";
import { workTx } from "./work_tx.ts";
import { workWakes } from "./work_wakes.ts";
import type { Harness } from "./harness.ts";

/** One chapter per mechanism or idea. */
const CHAPTERS: readonly ((harness: Harness) => void)[] = [
  argumentMistakes,
  closing,
  codec,
  deliveries,
  distinctNames,
  errors,
  eventReceivers,
  foreignHandles,
  joined,
  lifecycle,
  locks,
  names,
  outbox,
  outboxRun,
  payloads,
  polling,
  projections,
  queueClaims,
  queueDead,
  queueErrors,
  queueEvents,
  queueExpiry,
  queueLookups,
  queueOrder,
  queueRaces,
  queueRetries,
  queueSignals,
  queueStamps,
  queueStates,
  queueTx,
  schemas,
  stamps,
  streamOffsets,
  streams,
  subscriptions,
  transactions,
  txBeside,
  txFailures,
  txRefusals,
  txScope,
  txTurns,
  wakeReceivers,
  wakes,
  work,
  workOutages,
  workStop,
  workTx,
  workWakes,
];

/** Every sentence of the contract that promises something, for one engine and driver. */
export function contract(harness: Harness): void {
  for (const chapter of CHAPTERS) chapter(harness);
}
