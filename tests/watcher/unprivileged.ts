/** A process that may read and write the database file, but no file beside it. */
import { nodeDriver } from "../../engines/sqlite/drivers/node.ts";
import { Watcher } from "../../engines/sqlite/watcher.ts";

const path = Deno.args[0] ?? "";
const watcher = new Watcher({
  path,
  open: () => nodeDriver.open(path),
  resultCode: nodeDriver.resultCode,
  watchFiles: true,
  poll: { min: 5, max: 20 },
  onEvent: (event) => console.log(event.type),
});
await watcher.watch("queue:a", {
  wake: () => {
    console.log("wake");
    void watcher.close();
  },
  end: () => {},
});
console.log(watcher.mode);
