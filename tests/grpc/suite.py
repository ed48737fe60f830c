"""gRPC through Sandarac: each test runs over a listener in clear and over one with TLS, before two real servers."""

import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import traceback
from concurrent import futures
from pathlib import Path

import grpc

# The longest that anything may take, in seconds, on a busy machine.
PATIENCE = 60
LARGE = 8 << 20
OPTIONS = [("grpc.max_receive_message_length", 2 * LARGE), ("grpc.max_send_message_length", 2 * LARGE)]


class Service(grpc.GenericRpcHandler):
    """A service whose messages are bytes, so that nothing has to be generated."""

    def __init__(self):
        self.cancelled = queue.Queue()
        self.remaining = queue.Queue()

    def service(self, details):
        handler = {
            "/test/Echo": grpc.unary_unary_rpc_method_handler(self.echo),
            "/test/Fail": grpc.unary_unary_rpc_method_handler(self.fail),
            "/test/Download": grpc.unary_stream_rpc_method_handler(self.download),
            "/test/Upload": grpc.stream_unary_rpc_method_handler(self.upload),
            "/test/Chat": grpc.stream_stream_rpc_method_handler(self.chat),
            "/test/Hang": grpc.unary_stream_rpc_method_handler(self.hang),
        }
        return handler.get(details.method)

    def echo(self, request, context):
        received = dict(context.invocation_metadata())
        context.set_trailing_metadata((("x-late", received.get("x-own", "none")), ("x-bytes-bin", b"\x00\xff")))
        return request

    def fail(self, request, context):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"refused: {request.decode()}")

    def download(self, request, context):
        count, size = map(int, request.split())
        for at in range(count):
            yield bytes([at % 256]) * size

    def upload(self, requests, context):
        return str(sum(len(request) for request in requests)).encode()

    def chat(self, requests, context):
        for request in requests:
            yield request[::-1]

    def hang(self, request, context):
        ended = threading.Event()
        context.add_callback(ended.set)
        # What follows `yield` does not run if the call has ended by then.
        context.add_callback(lambda: self.cancelled.put(True))
        self.remaining.put(context.time_remaining())
        yield b"begun"
        ended.wait(PATIENCE)


def serve(service):
    server = grpc.server(futures.ThreadPoolExecutor(64), handlers=[service], options=OPTIONS)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def unary(channel, method):
    return channel.unary_unary(f"/test/{method}")


def messages_and_metadata_go_both_ways(channel, service):
    response, call = unary(channel, "Echo").with_call(b"hello", metadata=[("x-own", "mine")], timeout=PATIENCE)
    trailing = dict(call.trailing_metadata())
    assert (response, trailing["x-late"], trailing["x-bytes-bin"]) == (b"hello", "mine", b"\x00\xff"), trailing


def a_status_and_its_text_arrive(channel, service):
    try:
        unary(channel, "Fail")(b"this", timeout=PATIENCE)
    except grpc.RpcError as error:
        assert (error.code(), error.details()) == (grpc.StatusCode.FAILED_PRECONDITION, "refused: this"), error
    else:
        raise AssertionError("no error")


def an_unknown_method_is_unimplemented(channel, service):
    try:
        unary(channel, "Nothing")(b"", timeout=PATIENCE)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error
    else:
        raise AssertionError("no error")


def a_server_streams(channel, service):
    parts = list(channel.unary_stream("/test/Download")(b"2000 1000", timeout=PATIENCE))
    assert len(parts) == 2000 and all(part == bytes([at % 256]) * 1000 for at, part in enumerate(parts))


def a_client_streams(channel, service):
    total = channel.stream_unary("/test/Upload")((b"x" * 1000 for _ in range(2000)), timeout=PATIENCE)
    assert total == b"2000000", total


def both_stream_in_turns(channel, service):
    requests = queue.Queue()
    responses = channel.stream_stream("/test/Chat")(iter(requests.get, None), timeout=PATIENCE)
    for at in range(200):
        message = f"message {at}".encode()
        requests.put(message)
        assert next(responses) == message[::-1]
    requests.put(None)
    assert list(responses) == []


def both_stream_at_once(channel, service):
    sent = [bytes([at % 256]) * 50_000 for at in range(200)]
    assert list(channel.stream_stream("/test/Chat")(iter(sent), timeout=PATIENCE)) == sent


def large_messages_go_both_ways(channel, service):
    message = os.urandom(LARGE)
    assert unary(channel, "Echo")(message, timeout=PATIENCE) == message


def a_slow_reader_gets_everything_and_holds_up_no_other(channel, service):
    slow = channel.unary_stream("/test/Download")(b"100 100000", timeout=PATIENCE)
    first = next(slow)
    for _ in range(20):
        assert unary(channel, "Echo")(b"quick", timeout=PATIENCE) == b"quick"
    assert len(first) + sum(len(part) for part in slow) == 100 * 100_000


def a_deadline_reaches_the_server_and_ends_the_call(channel, service):
    call = channel.unary_stream("/test/Hang")(b"", timeout=1)
    try:
        list(call)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
    else:
        raise AssertionError("no error")
    remaining = service.remaining.get(timeout=PATIENCE)
    assert remaining is not None and remaining < 5, remaining
    assert service.cancelled.get(timeout=PATIENCE)


def a_cancelled_call_is_cancelled_at_the_server(channel, service):
    call = channel.unary_stream("/test/Hang")(b"", timeout=PATIENCE)
    assert next(call) == b"begun"
    call.cancel()
    service.remaining.get(timeout=PATIENCE)
    assert service.cancelled.get(timeout=PATIENCE)


def many_calls_run_at_once(channel, service):
    calls = [unary(channel, "Echo").future(str(at).encode(), timeout=PATIENCE) for at in range(300)]
    assert [call.result() for call in calls] == [str(at).encode() for at in range(300)]


def a_server_that_stops_loses_no_call(channel, service, servers):
    """The last test of a listener: one of the two servers stops in order while calls run."""
    stop = threading.Event()
    failures, done = [], [0]

    def call():
        while not stop.is_set():
            try:
                assert unary(channel, "Echo")(b"steady", timeout=PATIENCE) == b"steady"
                done[0] += 1
            except grpc.RpcError as error:
                # What a server of grpcio makes of a call that reaches it just as it stops, also without a proxy.
                if error.code() != grpc.StatusCode.CANCELLED:
                    failures.append(error)
                    return
            except Exception as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    servers.pop(0).stop(grace=PATIENCE).wait(PATIENCE)
    before = done[0]
    while done[0] < before + 50 and not failures:
        stop.wait(0.01)
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert not failures, failures


TESTS = [
    messages_and_metadata_go_both_ways,
    a_status_and_its_text_arrive,
    an_unknown_method_is_unimplemented,
    a_server_streams,
    a_client_streams,
    both_stream_in_turns,
    both_stream_at_once,
    large_messages_go_both_ways,
    a_slow_reader_gets_everything_and_holds_up_no_other,
    a_deadline_reaches_the_server_and_ends_the_call,
    a_cancelled_call_is_cancelled_at_the_server,
    many_calls_run_at_once,
]


def certificate(directory):
    """Makes a self-signed certificate. Returns its file and that of its key."""
    chain, key = directory / "chain.pem", directory / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", chain]
    subprocess.run(command, check=True, capture_output=True)
    return chain, key


def start(directory, backends):
    """Starts Sandarac and returns it with the ports of its listeners: in clear, over TLS."""
    chain, key = certificate(directory)
    settings = directory / "sandarac.toml"
    settings.write_text(f"""
threads = 2
[[listen]]
address = "127.0.0.1:0"
http2 = true
[[listen]]
address = "127.0.0.1:0"
tls = {{ certificates = [{{ chain = "{chain}", key = "{key}" }}] }}
[pool.app]
backends = {[f"h2://127.0.0.1:{port}" for port in backends]}
[[route]]
pool = "app"
[admin]
listen = "unix:{directory}/admin"
""")
    command = [os.environ["SANDARAC_BIN"], "-c", settings]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    ports, said = [], []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"listening on 127\.0\.0\.1:(\d+)", line):
            ports.append(found[1])
        if len(ports) == 2:
            threading.Thread(target=lambda: said.extend(process.stdout), daemon=True).start()
            return process, ports, said
    sys.exit(f"grpc: sandarac did not start:\n{''.join(said)}")


def run(name, test, *arguments):
    try:
        test(*arguments)
        print(f"ok      {name}: {test.__name__}")
        return 1, 0
    except Exception:
        print(f"FAILED  {name}: {test.__name__}\n{traceback.format_exc()}")
        return 0, 1


def main():
    service = Service()
    results = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        started = [serve(service) for _ in range(3)]
        servers = [server for server, _ in started]
        process, (clear, tls), said = start(directory, [port for _, port in started])
        try:
            credentials = grpc.ssl_channel_credentials((directory / "chain.pem").read_bytes())
            channels = {
                "in clear": grpc.insecure_channel(f"127.0.0.1:{clear}", OPTIONS),
                "over TLS": grpc.secure_channel(f"localhost:{tls}", credentials, OPTIONS),
            }
            for name, channel in channels.items():
                results += [run(name, test, channel, service) for test in TESTS]
                results.append(run(name, a_server_that_stops_loses_no_call, channel, service, servers))
                channel.close()
        finally:
            process.terminate()
            process.wait(PATIENCE)
        for server in servers:
            server.stop(None)
    passed, failed = (sum(column) for column in zip(*results))
    if failed:
        print(f"sandarac said:\n{''.join(said)}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
