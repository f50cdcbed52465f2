// The search of built pages without a browser: node search.cjs PAGES QUERY ...
// Prints, for each query, the names of the pages found, best first.
const fs = require("fs"), vm = require("vm");
const [pages, ...queries] = process.argv.slice(2);
const context = vm.createContext({
  document: {
    addEventListener() {},
    getElementById: () => null,
    documentElement: {dataset: {content_root: "./"}},
  },
  window: {}, console, DOCUMENTATION_OPTIONS: {}, SPHINX_HIGHLIGHT_ENABLED: false,
  _ready() {}, _: (text) => text,
});
const scripts = ["base-stemmer.js", "english-stemmer.js", "language_data.js", "searchtools.js"];
for (const script of scripts.map((name) => `${pages}/_static/${name}`))
  if (fs.existsSync(script)) vm.runInContext(fs.readFileSync(script, "utf8"), context);
Object.assign(context, context.window);
vm.runInContext(fs.readFileSync(`${pages}/searchindex.js`, "utf8"), context);
const found = {};
for (const query of queries) {
  context.query = query;
  const results = vm.runInContext("Search._performSearch(...Search._parseQuery(query))", context);
  found[query] = results.reverse().map((result) => result[0]);
}
console.log(JSON.stringify(found));
