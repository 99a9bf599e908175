// node-redlock on ioredis, measured by `cargo xtask bench redis`. What it is told and says: ../README.md.
"use strict";

const readline = require("node:readline");
const { default: Redlock } = require("redlock");
const Redis = require("ioredis");

const TASKS = 64;
const LEASE_MS = 30_000;

const say = (line) => process.stdout.write(`${line}\n`);
const name = (task) => `orders/item-${String(task).padStart(8, "0")}`;

function version() {
  const of = (path) => JSON.parse(require("node:fs").readFileSync(path, "utf8")).version.replace(/^v/, "");
  const redlock = of(require.resolve("redlock").replace(/dist.*/, "package.json"));
  return `node-redlock ${redlock}, ioredis ${require("ioredis/package.json").version}, Node.js ${process.versions.node}`;
}

async function pairs(redlock, end) {
  const task = async (number) => {
    let count = 0;
    while (performance.now() < end) {
      const lock = await redlock.acquire([name(number)], LEASE_MS);
      await lock.release();
      count += 1;
    }
    return count;
  };
  const counts = await Promise.all(Array.from({ length: TASKS }, (_, number) => task(number)));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function main() {
  const [mode, url] = process.argv.slice(2);
  if (mode === "--version") {
    say(version());
    return;
  }
  if (mode !== "pairs") throw new Error(`there is no mode ${mode}`);
  const client = new Redis(url);
  const redlock = new Redlock([client]);
  await (await redlock.acquire(["warm-up"], LEASE_MS)).release();
  say("ready");
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const before = process.cpuUsage();
    const count = await pairs(redlock, performance.now() + Number(line));
    const { user, system } = process.cpuUsage(before);
    say(`${(user + system) * 1000} ${count}`);
  }
  client.disconnect();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
