-- Prints what wrk measured as one line of JSON. Only `done` is defined: a `request` or `response` function would be
-- called for every request and slow the client down.
function done(summary, latency, requests)
  local errors = summary.errors
  print(string.format(
    'RESULT {"requests": %d, "microseconds": %d, "bytes": %d, "connect": %d, "read": %d, "write": %d, '
      .. '"status": %d, "timeout": %d, "p50": %.1f, "p99": %.1f, "max": %.1f}',
    summary.requests, summary.duration, summary.bytes, errors.connect, errors.read, errors.write,
    errors.status, errors.timeout, latency:percentile(50), latency:percentile(99), latency.max))
end
