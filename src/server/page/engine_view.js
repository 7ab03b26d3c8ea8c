// The engine panel: figures, batch, block pool, table, and whether the server answers.
import { ConnectionError } from "./api.js";
import { setUpBatch } from "./batch.js";
import { BlockMap, numBlocksHeld } from "./blocks.js";
import { announce, button, byId, element, setText } from "./dom.js";
import { watchClosely, whenEngineChanges } from "./engine.js";
import { titleOf } from "./errors.js";
import { count, duration, percent, rate } from "./format.js";
import { setUpSequences, showSequences } from "./sequences.js";
import { offerSpeculation } from "./settings.js";
import { setUpSparkline } from "./sparkline.js";

const OLD_S = 2;
const pools = [];

/** Prepares the panel; `onReconnect` is called when the server answers for the first time, or again. */
export function setUpEngineView(onReconnect) {
  const showSteps = setUpBatch();
  const addRate = setUpSparkline();
  setUpSequences();
  showSequences([]);
  showSteps([]);
  let isConnected = false;
  whenEngineChanges(({ live, error }) => {
    showConnection(live, error);
    document.body.classList.toggle("is-stale", !live);
    if (!live) {
      isConnected = false;
      return;
    }
    if (!isConnected) onReconnect();
    isConnected = true;
    showFigures(live);
    offerSpeculation(live.engine.max_drafted_tokens > 0);
    if (live.engine.drafted_tokens > 0) byId("draft-key").hidden = false;
    addRate(live.engine.tokens_per_second);
    showSteps(live.steps);
    showPools(live.pools);
    showSequences(live.data);
  });
}

function showConnection(live, error) {
  const banner = byId("banner");
  document.body.dataset.connection = live ? "live" : "lost";
  setText(byId("connection"), live ? "Connected" : connectionText(error));
  if (live) {
    if (!banner.hidden) announce("Connected again.");
    banner.hidden = true;
  } else if (banner.hidden || banner.firstChild.textContent !== bannerText(error)) {
    const label = error.status === 401 ? "Enter the key" : "Try now";
    banner.replaceChildren(element("p", {}, bannerText(error)), button(label, watchClosely));
    banner.hidden = false;
  }
}

function connectionText(error) {
  if (error instanceof ConnectionError) return "Not connected";
  return error.status === 401 ? "Locked" : "No engine";
}

function bannerText(error) {
  if (error instanceof ConnectionError) {
    return "The server doesn't answer. The page retries until it does.";
  }
  if (error.status === 401) return "This server asks for an API key. Without one, the page can't show its engine.";
  return `${titleOf(error)}: ${error.message}`;
}

function showFigures({ engine, pools: [pool], steps }) {
  const blocksInUse = pool ? numBlocksHeld(pool) : 0;
  const last = steps.at(-1);
  setText(byId("rate"), rate(engine.tokens_per_second));
  setText(byId("engine-step"), engine.step > 0 ? `step ${count(engine.step)}` : "");
  setText(byId("engine-brief"), engine.num_running > 0 ? `· ${count(engine.num_running)} running` : "");
  showStats([
    ["Running", count(engine.num_running), `of ${count(engine.max_num_seqs)}`],
    ["Waiting", count(engine.num_waiting), `of ${count(engine.max_queued)}`],
    ["First token", time(engine.ttft_p50_s), engine.ttft_p99_s == null ? "median" : `p99 ${time(engine.ttft_p99_s)}`],
    ["Step", last ? duration(last.ms) : "–", engine.step_age_s > OLD_S ? `${time(engine.step_age_s)} ago` : "last one"],
    ["Blocks", shareOf(blocksInUse, pool?.num_blocks), `${count(blocksInUse)} of ${count(pool?.num_blocks ?? 0)}`],
    ["Prefix cache", shareOf(engine.prefix_hits, engine.prefix_queries),
      engine.prefix_queries > 0 ? `${count(engine.prefix_hits)} of ${count(engine.prefix_queries)}` : "nothing asked"],
    ["Preempted", count(engine.preemptions), engine.preemptions === 1 ? "time" : "times"],
    ["Context", count(engine.max_model_len), "tokens at most"],
    ...(engine.drafted_tokens > 0 ? [["Drafts accepted", shareOf(engine.accepted_tokens, engine.drafted_tokens),
      `${count(engine.accepted_tokens)} of ${count(engine.drafted_tokens)}`]] : []),
  ]);
}

const shareOf = (part, whole) => (whole > 0 ? percent(part / whole) : "–");
const time = (seconds) => (seconds == null ? "–" : duration(1000 * seconds));

function showStats(entries) {
  const list = byId("stats");
  for (const [i, [name, value, detail]] of entries.entries()) {
    const entry = list.children[i] ?? list.appendChild(element("div", {}, element("dt"), element("dd"), element("dd")));
    [name, value, detail].forEach((text, j) => setText(entry.children[j], text));
  }
}

function showPools(answers) {
  while (pools.length < answers.length) {
    const map = new BlockMap(byId("blocks-caption"));
    pools.push(map);
    byId("pools").append(map.node);
  }
  answers.forEach((pool, i) => pools[i].show(pool));
}
