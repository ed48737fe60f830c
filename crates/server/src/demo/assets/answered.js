// Asks for this page once more and says in the footer who answered, and how long it took.
const place = document.getElementById("answered");
const text = (tag, content) => Object.assign(document.createElement(tag), { textContent: content });

async function ask() {
  const begun = performance.now();
  const response = await fetch(location.href);
  await response.text();
  const took = performance.now() - begun;
  const header = (name) => response.headers.get(name);
  const status = header("cache-status");
  const hit = status !== null && /;\s*hit\b/.test(status);
  const time = `${took < 10 ? took.toFixed(1) : Math.round(took)} ms`;

  let verdict = `The site made this page again: ${time}.`;
  if (status === null) verdict = `No accelerator in between: the site answered in ${time}.`;
  else if (hit) verdict = `Answered from memory in ${time}; the site made this page in ${header("x-made-in")}.`;

  place.className = hit ? "hit" : "site";
  place.replaceChildren(text("strong", verdict));
  for (const name of ["cache-status", "age", "cache-control", "cdn-cache-control", "x-made-at"]) {
    if (header(name) !== null) place.append(text("code", `${name}: ${header(name)}`), document.createElement("br"));
  }
}

ask().catch((error) => place.replaceChildren(text("strong", `Asking again failed: ${error.message}`)));
