// @ts-check
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
const MOST_INLINE = 64 * 1024; // bytes of a result that go with `settle`; larger ones are brought before

/**
 * A job in our hands; `job_id` and `token` go with all that is said of it.
 * @typedef {{job_id: string, token: number, kind: string, args: any, timeout: number, start_by: string | null,
 *   cancelling: boolean}} Run
 * @typedef {{reason: string, message: string, detail?: string}} Failure
 * @typedef {{cause: string, result?: any, result_location?: string, error?: Failure}} End
 * @typedef {{signal: AbortSignal, log: (text: string) => Promise<any>,
 *   progress: (share: number, message?: string) => Promise<any>, checkpoint: (value: any) => Promise<any>}} Context
 * @typedef {{run: Run, abort: AbortController, ended?: Promise<void>}} Underway
 */

// Your tasks, by kind. They get the arguments, and a context with signal, log, progress and checkpoint.
/** @type {Record<string, (args: any, context: Context) => Promise<any>>} */
const tasks = {
  "demo.add": async ({ a, b }, context) => {
    await context.log(`adding ${a} and ${b}`);
    return a + b;
  },
  "demo.text": async ({ length }) => "x".repeat(length),
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
class Refused extends Error {} // for good: the same request would be refused again

// ---------------------------------------------------------------------------------------------------------------------

/**
 * @param {string} method @param {string} path @param {any} [body]
 * @param {{wait?: number, signal?: AbortSignal}} [options]
 * @returns {Promise<any>}
 */
async function call(method, path, body, { wait = 0, signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = { "content-type": "application/json", "tide-tenant": "*" };
  if (KEY) headers.authorization = `Bearer ${KEY}`;
  if (wait) headers.prefer = `wait=${wait}`;
  /** @type {RequestInit} */
  const options = { method, headers, signal: signal ?? AbortSignal.timeout((wait + 30) * 1000) };
  if (body !== undefined) options.body = JSON.stringify(body);
  const answer = await fetch(URL_ + path, options);
  const told = answer.status === 204 ? null : await answer.json();
  if (answer.ok) return told;
  if (told.code === "lease-lost") throw new LeaseLost(told.detail);
  const Kind = answer.status < 500 && answer.status !== 429 ? Refused : Error;
  throw new Kind(`${method} ${path}: ${answer.status} ${told.code}: ${told.detail}`);
}

// What may be sent twice is sent until it has arrived, or was refused for good.
/** @param {string} method @param {string} path @param {any} [body] @returns {Promise<any>} */
async function surely(method, path, body) {
  for (let delay = 100; ; delay = Math.min(delay * 2, 5000)) {
    try {
      return await call(method, path, body);
    } catch (error) {
      if (error instanceof LeaseLost || error instanceof Refused) throw error;
      say(`${messageOf(error)}; again in ${delay} ms`);
      await pause(delay);
    }
  }
}

/** @param {number} milliseconds @param {AbortSignal} [signal] @returns {Promise<void>} */
function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const giveUp = () => { clearTimeout(timer); reject(signal?.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener("abort", giveUp); resolve(); }, milliseconds);
    signal?.addEventListener("abort", giveUp, { once: true });
  });
}

/** @param {string} words */
const say = (words) => console.error(`${new Date().toISOString()} ${words}`);
/** @param {{job_id: string, token: number}} run */
const keyOf = (run) => `${run.job_id}/${run.token}`;
/** @param {any} error */
const messageOf = (error) => String(error?.message ?? error);

// Arguments as the task gets them: results of parents are put in. This worker has no secrets, so whoever asks for one
// must go elsewhere; what a parent returned cannot ask for any.
/** @param {any} value @returns {Promise<any>} */
async function filled(value) {
  if (value === null || typeof value !== "object") return value;
  if (typeof value.$secret === "string") throw new Fatal(`this worker has no secret ${value.$secret}`);
  if (typeof value.$result_of === "string") return surely("GET", `/v1/jobs/${value.$result_of}/result`);
  if (Array.isArray(value)) return Promise.all(value.map(filled));
  return Object.fromEntries(await Promise.all(Object.entries(value).map(async ([name, one]) => [name, await filled(one)])));
}

// A result that is too large for `settle` goes to the server, or to its bucket, while the run is still ours.
/** @param {Run} run @param {any} result @returns {Promise<End>} */
async function returned(run, result) {
  const text = Buffer.from(JSON.stringify(result ?? null));
  if (text.length <= MOST_INLINE) return { cause: "returned", result: result ?? null };
  const offer = await surely("POST", `/v1/jobs/${run.job_id}/outputs`, { token: run.token, size: text.length });
  const { method, url, complete } = offer.upload;
  /** @type {Record<string, string>} */
  const headers = complete ? {} : { "content-type": "application/octet-stream" };
  const answer = await fetch(new URL(url, URL_), { method, body: text, headers }); // without the key
  if (!answer.ok) throw new Error(`the result could not be brought: ${answer.status} ${await answer.text()}`);
  if (complete) await surely("POST", complete);
  return { cause: "returned", result_location: offer.location };
}

class Worker {
  constructor() {
    /** @type {Map<string, Underway>} */
    this.running = new Map();
    this.draining = false;
    this.left = false;
    /** @type {AbortController | null} */
    this.claiming = null;
    /** @type {Promise<void> | null} */
    this.losing = null;
    this.path = "";
    this.ttl = this.beatEvery = this.leaseUntil = 0;
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
        const wait = Math.ceil(Math.max(500, this.leaseUntil - sent)); // a fraction would be refused
        const told = await call("POST", `${this.path}/heartbeat`, undefined, { signal: AbortSignal.timeout(wait) });
        this.leaseUntil = sent + this.ttl;
        for (const run of told.stop) this.running.get(keyOf(run))?.abort.abort("stopped");
      } catch (error) {
        if (this.left) return;
        say(`no beat: ${messageOf(error)}`);
        if (error instanceof LeaseLost || performance.now() >= this.leaseUntil) await this.lost();
      }
    }
  }

  // Whoever notices first, beat or claim, does it for both.
  lost() {
    this.losing ??= this.beginAnew().finally(() => { this.losing = null; });
    return this.losing;
  }

  async beginAnew() {
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
        runs.forEach((/** @type {Run} */ run) => this.start(run));
      } catch (error) {
        if (this.draining) return;
        if (error instanceof LeaseLost) { await this.lost(); continue; }
        say(`cannot claim: ${messageOf(error)}`);
        await pause(500);
        await this.adopt();
      }
    }
  }

  // A claim whose answer was lost may have taken jobs all the same.
  async adopt() {
    try {
      const { runs } = await call("GET", `${this.path}/runs`);
      const strange = runs.filter((/** @type {Run} */ run) => !this.running.has(keyOf(run)));
      strange.forEach((/** @type {Run} */ run) => this.start(run));
    } catch (error) {
      say(`in doubt: ${messageOf(error)}`);
    }
  }

  /** @param {Run} run */
  start(run) {
    /** @type {Underway} */
    const one = { run, abort: new AbortController() };
    this.running.set(keyOf(run), one);
    one.ended = this.execute(one)
      .catch((error) => say(`${run.job_id}: ${messageOf(error)}`))
      .finally(() => this.running.delete(keyOf(run)));
  }

  /** @param {Underway} one */
  async execute({ run, abort }) {
    const end = { job_id: run.job_id, token: run.token, ...(await this.endOf(run, abort)) };
    if (abort.signal.reason === "lost") return;
    const told = await surely("POST", `${this.path}/settle`, { ends: [end] });
    say(`${run.kind} ${run.job_id}: ${end.cause}, ${told.ends[0].verdict}`);
  }

  /** @param {Run} run @param {AbortController} abort @returns {Promise<End>} */
  async endOf(run, abort) {
    if (run.cancelling) return { cause: "stopped" };
    if (run.start_by && Date.parse(run.start_by) < Date.now()) return { cause: "expired" };
    const timer = setTimeout(() => abort.abort("timeout"), run.timeout * 1000);
    try {
      const result = await tasks[run.kind](await filled(run.args), this.context(run, abort.signal));
      return await returned(run, result);
    } catch (/** @type {any} */ error) {
      const why = abort.signal.reason;
      if (why === "stopped" || why === "released") return { cause: why };
      const reason = why === "timeout" ? "timeout" : "error";
      const message = why === "timeout" ? `ran longer than ${run.timeout} s` : messageOf(error);
      return { cause: error instanceof Fatal ? "gave_up" : "failed", error: { reason, message, detail: error?.stack } };
    } finally {
      clearTimeout(timer);
    }
  }

  /** @param {Run} run @param {AbortSignal} signal @returns {Context} */
  context(run, signal) {
    let number = 0;
    const key = { job_id: run.job_id, token: run.token };
    const note = (/** @type {object} */ told) => surely("POST", `${this.path}/notes`, { notes: [{ ...key, ...told }] });
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
