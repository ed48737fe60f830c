// The suite's own origin server, kept to the loopback interface: `node origin.mjs SUITE`.
// It prints "Listening on http://127.0.0.1:PORT/".
import http from 'node:http'
import path from 'node:path'
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const suite = path.resolve(process.argv[2])
const listen = http.Server.prototype.listen
http.Server.prototype.listen = function (port) {
  return listen.call(this, Number(port), '127.0.0.1')
}

const engine = existsSync(path.join(suite, 'test-engine')) ? path.join(suite, 'test-engine') : suite
process.chdir(suite)
await import(pathToFileURL(path.join(engine, 'server', 'server.mjs')))
