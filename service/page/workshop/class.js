// Decides which product this page shows: the shared one, or a separate one. In a class it asks for the class code.
import { adminToken, call, dropAdminToken, isTeacherToken, sandbox, setAdminToken, setSandbox, takeEnded } from "../shared/api.js";
import { followClass } from "../class/news.js";
import { setUpClassPanel } from "./class_panel.js";
import { alertUser, byId, inContainer, plural, setText, tell } from "../shared/dom.js";

const SHARED = 1;

// Shows DIALOG until it is closed; what its field had when it was closed by "ok", else null.
function ask(dialog, input) {
  return new Promise((resolve) => {
    input.value = "";
    dialog.returnValue = "";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok" && input.value ? input.value.trim() : null), { once: true });
    dialog.showModal();
    input.focus();
    const scanned = takeScannedCode();
    if (!scanned) return;
    input.value = scanned;
    byId("join-name").focus();
  });
}

// The class code in the address that the QR code contains, /#join=CODE; null: there is none. It is used once.
function takeScannedCode() {
  if (!location.hash.startsWith("#join=")) return null;
  const code = location.hash.slice("#join=".length);
  history.replaceState(null, "", location.pathname + location.search);
  return code;
}

// A new product for this page; CODE is the class code where there is a class, NAME the learner's on the class board.
async function takeOwn(code, name) {
  const { product_id: product, token } = await call("POST", "/sandboxes", name ? { name } : {}, code ?? undefined);
  setSandbox({ product, token });
  return product;
}

const WHY_JOIN = {
  evicted: "The teacher ended your place in the class. Enter the class code to join again with another product.",
  forgotten: "The service was restarted, or another learner got your place while you were away. Enter the class code to join again.",
};

// Asks for the class code or the teacher's token until one is valid. WHY: the text to show first, or null.
async function join(why) {
  const say = (text) => {
    setText(byId("join-why"), text ?? "");
    byId("join-why").hidden = !text;
  };
  say(why);
  for (;;) {
    const given = await ask(byId("join-dialog"), byId("join-code"));
    if (given === null) continue;
    try {
      if (await isTeacherToken(given)) {
        setAdminToken(given);
        return;
      }
      await takeOwn(given.toLowerCase(), byId("join-name").value.trim());
      return;
    } catch (problem) {
      say(problem.name === "unauthorized" ? "That is neither the class code nor the teacher's token. Check it, and enter it again." : `You could not join. ${problem.message}`);
    }
  }
}

function showShop(shop) {
  setText(byId("shop-name"), shop.own ? `product ${shop.product}, my own` : shop.product === SHARED ? "" : `product ${shop.product}`);
  byId("own-product").hidden = shop.own || shop.learner;
  byId("shared-product").hidden = !shop.own || shop.learner;
  // A learner's token changes one product. The teacher's changes everything, and this page may be on a projector.
  const token = shop.learner ? sandbox()?.token : null;
  const bearer = token ?? (adminToken() ? "$TOKEN" : null);
  byId("curl-token").hidden = token !== null || !adminToken();
  setText(
    byId("curl-line"),
    // The token comes by standard input, since other users of the machine can read the arguments.
    `curl${bearer ? " -H @-" : ""} -H 'Content-Type: application/json' -d '{"product_id":${shop.product},"quantity":1}' ` +
      `${location.origin}/orders${bearer ? ` <<<"Authorization: Bearer ${bearer}"` : ""}`,
  );
}

function showClass(state) {
  byId("class-open").hidden = !state.classroom || !state.teacher;
  if (!state.code) return;
  setText(byId("class-code"), state.code);
  showAddress(state);
  setText(byId("class-count"), plural(state.learners, "learner so far", "learners so far"));
}

const isLoopback = (host) => host === "localhost" || host.endsWith(".localhost") || /^(127\.|0\.0\.0\.0$|\[::1?\]$)/.test(host);

// The address for learners: the address of this page, unless it is a loopback address.
function showAddress({ addresses, container }) {
  if (container && addresses.length > 0 && isLoopback(location.hostname)) {
    setText(byId("class-address"), "Not known.");
    setText(byId("class-address-note"), inContainer(location.pathname));
    return;
  }
  const mine = isLoopback(location.hostname) ? null : location.origin;
  const [first = null, ...more] = mine ? [mine, ...addresses.filter((address) => address !== mine)] : addresses;
  setText(byId("class-address"), first ?? "No other computer can reach this service.");
  setText(
    byId("class-address-note"),
    first === null
      ? `The service listens on this computer only. Start it with --listen 0.0.0.0:${location.port || 80}.`
      : mine
        ? ""
        : `${more.length > 0 ? `Or ${more.join(" or ")}. ` : ""}If a learner's browser does not open it, use another address of this computer, with port ${location.port || 80}.`,
  );
}

// Offers only values that the service accepts.
function applyLimits({ run, strategy }) {
  const most = (id, value) => {
    byId(id).max = String(Math.min(value, Number(byId(id).max)));
    if (byId(id).valueAsNumber > Number(byId(id).max)) byId(id).value = byId(id).max;
  };
  most("think", strategy.think_ms);
  most("wait", strategy.lock_wait_ms);
  most("ttl", strategy.lock_ttl_ms);
  most("load-connections", run.connections);
  most("load-seconds", run.duration_ms / 1000);
  for (const option of [...byId("load-instances").options]) if (Number(option.value) > run.instances) option.remove();
}

function setUpClassDialog() {
  byId("class-open").addEventListener("click", async () => {
    byId("class-dialog").showModal();
    showClass(await call("GET", "/classroom"));
  });
}

// Finds out which product SHOP is about: sets its product, own and learner. Returns whether the user has just come in by the dialog.
export async function setUpClass(shop) {
  let state = await call("GET", "/classroom");
  let joined = false;
  const ended = takeEnded() ?? (sandbox() && state.owns === null ? (state.evicted ? "evicted" : "forgotten") : null);
  if (state.classroom && !state.teacher) {
    dropAdminToken(); // of an earlier class
    if (state.owns === null) {
      setSandbox(null);
      await join(WHY_JOIN[ended]);
      joined = true;
      state = await call("GET", "/classroom");
    }
  }
  shop.learner = state.classroom && !state.teacher;
  if (state.owns !== null && (shop.learner || shop.asked === null)) Object.assign(shop, { product: state.owns, own: true });
  shop.limits = state.limits;
  applyLimits(state.limits);
  setUpClassDialog();
  takeScannedCode(); // of one who has joined already
  followClass();
  if (state.classroom && state.teacher) setUpClassPanel();
  showClass(state);
  showShop(shop);
  byId("own-product").addEventListener("click", async () => {
    try {
      await takeOwn();
      tell("This page now has its own product.");
      location.reload();
    } catch (problem) {
      alertUser(`The service could not make a product. ${problem.message}`);
    }
  });
  byId("shared-product").addEventListener("click", () => {
    setSandbox(null);
    location.reload();
  });
  return joined;
}
