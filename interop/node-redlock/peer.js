// node-redlock on ioredis, as a peer of `cargo xtask interop`. What it is told and says: ../README.md.
//
// The surprise: what it takes it tries for ever, but a release or an extension it tries once. Its own default is to try
// a release that found nothing eleven times, which would hide for seconds that the lock had run out.
"use strict";

const readline = require("node:readline");
const { default: Redlock, ExecutionError } = require("redlock");
const Redis = require("ioredis");

const FOR_EVER = -1;
// Its defaults are 200 and 100 ms; shorter, so that it meets more moments of the other side.
const POLL = { retryDelay: 10, retryJitter: 5 };

const say = (line) => process.stdout.write(`${line}\n`);

async function attempt(what, deed) {
  try {
    const done = await deed();
    say(`${what}: ok`);
    return done;
  } catch (error) {
    if (!(error instanceof ExecutionError)) throw error;
    say(`${what}: lost (${error.message})`);
    return undefined;
  }
}

async function main() {
  const [url, name, leaseMs] = process.argv.slice(2);
  if (url === "--version") {
    const version = (of) => require(`${of}/package.json`).version;
    const redlock = require("node:fs").readFileSync(require.resolve("redlock").replace(/dist.*/, "package.json"), "utf8");
    say(`node-redlock ${JSON.parse(redlock).version.replace(/^v/, "")}, ioredis ${version("ioredis")}, Node.js ${process.versions.node}`);
    return;
  }
  const client = new Redis(url);
  const redlock = new Redlock([client], { retryCount: 0, ...POLL });
  const lease = Number(leaseMs);
  const take = async () => {
    const lock = await redlock.acquire([name], lease, { retryCount: FOR_EVER });
    say("held");
    return lock;
  };
  let lock = await take();
  for await (const order of readline.createInterface({ input: process.stdin })) {
    if (order === "take") {
      lock = await take();
    } else if (order === "extend") {
      lock = (await attempt("extend", () => lock.extend(lease))) ?? lock;
    } else if (order === "release") {
      await attempt("release", () => lock.release());
    } else {
      throw new Error(`an order that cannot be followed: ${order}`);
    }
  }
  client.disconnect();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
