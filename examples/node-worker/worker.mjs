// A complete Tidewheel worker in plain Node (20 or newer), with nothing to install:
//
//   TIDE_URL=http://127.0.0.1:8433 node worker.mjs
//
// It registers, takes jobs, beats while they run, logs, tells progress, and says how each ended. SIGTERM lets it take no
// more, gives what runs DRAIN seconds to end, gives back the rest, and leaves. The protocol: docs/reference/worker-protocol.md
import { hostname } from "node:os";

const URL_ = (process.env.TIDE_URL ?? "http://127.0.0.1:8433").replace(/\/$/, "");
const KEY = process.env.TIDE_KEY;
const SLOTS = Number(process.env.SLOTS ?? 4);
const TTL = Number(process.env.TTL ?? 30);
const DRAIN = Number(process.env.DRAIN ?? 20) * 1000;
const WAIT = 20;

// Your tasks, by kind. They get the arguments, and a context with signal, log, progress and checkpoint.
const tasks = {
  "demo.add": async ({ a, b }) => a + b,
  "demo.fail": async () => { throw new Error("no luck today"); },
  "demo.fatal": async () => { throw new Fatal("this can never work"); },
  "demo.slow": async ({ seconds }, context) => {
    const steps = Math.max(1, Math.ceil(seconds * 10));
    for (let step = 0; step < steps; step += 1) {
      await pause(100, context.signal);
      await context.log(`step ${step + 1} of ${steps}`);
      await context.progress((step + 1) / steps);
    }
    return "done";
  },
};

class Fatal extends Error {}
class LeaseLost extends Error {}

// ---------------------------------------------------------------------------------------------------------------------

async function call(method, path, body, { wait = 0, signal } = {}) {
  const headers = { "content-type": "application/json" };
  if (KEY) headers.authorization = `Bearer ${KEY}`;
  if (wait) headers.prefer = `wait=${wait}`;
  const options = { method, headers, signal: signal ?? AbortSignal.timeout((wait + 30) * 1000) };
  if (body !== undefined) options.body = JSON.stringify(body);
  const answer = await fetch(URL_ + path, options);
  const told = answer.status === 204 ? null : await answer.json();
  if (answer.ok) return told;
  if (told.code === "lease-lost") throw new LeaseLost(told.detail);
  throw new Error(`${method} ${path}: ${answer.status} ${told.code}: ${told.detail}`);
}

// What may be sent twice is sent until it has arrived.
async function surely(method, path, body) {
  for (let delay = 100; ; delay = Math.min(delay * 2, 5000)) {
    try {
      return await call(method, path, body);
    } catch (error) {
      if (error instanceof LeaseLost || delay > 60_000) throw error;
      say(`${error.message}; again in ${delay} ms`);
      await pause(delay);
    }
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

const say = (words) => console.error(`${new Date().toISOString()} ${words}`);
const keyOf = (run) => `${run.job_id}/${run.token}`;

class Worker {
  constructor() {
    this.running = new Map(); // key -> { run, abort, ended }
    this.draining = false;
    this.claiming = null;
  }

  async register() {
    const told = await surely("POST", "/v1/workers", {
      name: `${hostname()}/node-${process.pid}`, kinds: Object.keys(tasks), ttl: TTL,
    });
    this.path = `/v1/workers/${told.id}`;
    this.ttl = told.ttl * 1000;
    this.beatEvery = told.beat_every * 1000;
    this.leaseUntil = performance.now() + this.ttl;
    say(`registered as ${told.id}`);
  }

  // The lease counts from before a beat was sent. When it has passed, others may run our jobs: end all of them at once.
  async beat() {
    while (!this.left) {
      await pause(this.beatEvery);
      const sent = performance.now();
      try {
        const wait = Math.max(500, this.leaseUntil - sent);
        const told = await call("POST", `${this.path}/heartbeat`, undefined, { signal: AbortSignal.timeout(wait) });
        this.leaseUntil = sent + this.ttl;
        for (const run of told.stop) this.running.get(keyOf(run))?.abort.abort("stopped");
      } catch (error) {
        if (this.left) return;
        say(`no beat: ${error.message}`);
        if (error instanceof LeaseLost || performance.now() >= this.leaseUntil) await this.lost();
      }
    }
  }

  async lost() {
    say("the lease is lost: all runs end, and are told to nobody");
    for (const one of this.running.values()) one.abort.abort("lost");
    await Promise.allSettled([...this.running.values()].map((one) => one.ended));
    if (!this.draining) await this.register();
  }

  async work() {
    while (!this.draining) {
      const free = SLOTS - this.running.size;
      if (free === 0) {
        await Promise.race([...this.running.values()].map((one) => one.ended));
        continue;
      }
      try {
        this.claiming = new AbortController();
        const signal = AbortSignal.any([this.claiming.signal, AbortSignal.timeout((WAIT + 30) * 1000)]);
        const { runs } = await call("POST", `${this.path}/claim`, { limit: free }, { wait: WAIT, signal });
        runs.forEach((run) => this.start(run));
      } catch (error) {
        if (this.draining) return;
        if (error instanceof LeaseLost) { await this.lost(); continue; }
        say(`cannot claim: ${error.message}`);
        await pause(500);
        await this.adopt();
      }
    }
  }

  // A claim whose answer was lost may have taken jobs all the same.
  async adopt() {
    try {
      const { runs } = await call("GET", `${this.path}/runs`);
      runs.filter((run) => !this.running.has(keyOf(run))).forEach((run) => this.start(run));
    } catch (error) {
      say(`in doubt: ${error.message}`);
    }
  }

  start(run) {
    const one = { run, abort: new AbortController() };
    this.running.set(keyOf(run), one);
    one.ended = this.execute(one)
      .catch((error) => say(`${run.job_id}: ${error.message}`))
      .finally(() => this.running.delete(keyOf(run)));
  }

  async execute({ run, abort }) {
    const end = { job_id: run.job_id, token: run.token, ...(await this.endOf(run, abort)) };
    if (abort.signal.reason === "lost") return;
    const told = await surely("POST", `${this.path}/settle`, { ends: [end] });
    say(`${run.kind} ${run.job_id}: ${end.cause}, ${told.ends[0].verdict}`);
  }

  async endOf(run, abort) {
    if (run.cancelling) return { cause: "stopped" };
    if (run.start_by && Date.parse(run.start_by) < Date.now()) return { cause: "expired" };
    const timer = setTimeout(() => abort.abort("timeout"), run.timeout * 1000);
    try {
      const result = await tasks[run.kind](run.args, this.context(run, abort.signal));
      return { cause: "returned", result: result ?? null };
    } catch (error) {
      const why = abort.signal.reason;
      if (why === "stopped" || why === "released") return { cause: why };
      const reason = why === "timeout" ? "timeout" : "error";
      const message = why === "timeout" ? `ran longer than ${run.timeout} s` : String(error?.message ?? error);
      return { cause: error instanceof Fatal ? "gave_up" : "failed", error: { reason, message, detail: error?.stack } };
    } finally {
      clearTimeout(timer);
    }
  }

  context(run, signal) {
    let number = 0;
    const key = { job_id: run.job_id, token: run.token };
    const note = (told) => surely("POST", `${this.path}/notes`, { notes: [{ ...key, ...told }] });
    return {
      signal,
      log: (text) => surely("POST", "/v1/logs", { lines: [{ ...key, number: number++, text }] }),
      progress: (progress, message = "") => note({ progress, message }),
      checkpoint: (checkpoint) => note({ checkpoint }),
    };
  }

  async drain() {
    if (this.draining) return;
    this.draining = true;
    say(`takes no more; ${this.running.size} jobs have ${DRAIN / 1000} s to end`);
    this.claiming?.abort();
    const all = () => Promise.allSettled([...this.running.values()].map((one) => one.ended));
    await Promise.race([all(), pause(DRAIN)]);
    for (const one of this.running.values()) one.abort.abort("released");
    await all();
    this.left = true;
    await surely("POST", `${this.path}/deregister`);
    say("left");
    process.exit(0);
  }
}

const worker = new Worker();
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => worker.drain());
await worker.register();
worker.beat();
await worker.work();
