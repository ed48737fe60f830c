// What the suite says of its tests, as JSON: `node tests.mjs SUITE`.
import path from 'node:path'
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const suite = path.resolve(process.argv[2])
const load = async file => (await import(pathToFileURL(path.join(suite, 'tests', file)))).default

const groups = [...await load('index.mjs')]
// The package's command line runs this group too, although its index leaves it out; the current source has no such file.
if (existsSync(path.join(suite, 'tests', 'surrogate-control.mjs')) && !groups.some(group => group.id === 'surrogate-control')) {
  groups.push(await load('surrogate-control.mjs'))
}

const tests = {}
for (const group of groups) {
  for (const test of group.tests) {
    tests[test.id] = {
      group: group.name,
      name: test.name,
      kind: test.kind ?? 'required',
      dependsOn: test.depends_on ?? [],
      browserOnly: test.browser_only === true,
      cdnOnly: test.cdn_only === true
    }
  }
}
console.log(JSON.stringify(tests))
