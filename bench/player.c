/* Plays part of a log of requests, in its order, over keep-alive connections in a closed loop: whichever client is free
   sends the next line. Every answer is checked: 200, a length, and for GET a body that begins with <!-- HOST TARGET -->.
   usage: player PORT LOG FIRST COUNT CLIENTS SECONDS TIMES [WORD]
   LOG has lines METHOD HOST TARGET; after SECONDS no more are sent. Writes the microseconds of each line of the part to
   TIMES, as native 32-bit numbers (0: not answered), and prints "answered errors seconds", and with WORD how many heads had it. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CLIENTS = 1024, KEPT = 8192, LINE = 1024, PATIENCE = 30 };

struct line {
	char method[8], host[64], target[128];
};

struct client {
	int fd;
	long at;             /* its line, -1 where it has none */
	double sent;
	long received, length; /* bytes of the answer; all it will have, -1 before its head is there */
	char kept[KEPT + 1]; /* its beginning */
};

static struct client clients[MAX_CLIENTS];
static struct line *lines;
static uint32_t *times;
static long first, count, next_line, in_flight, answered, errors, with_word;
static const char *word;
static int port, poller;
static double began, seconds;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void connect_client(struct client *c)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1;
	if ((c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0) die("socket");
	if (connect(c->fd, (struct sockaddr *)&to, sizeof to)) die("connect");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
	if (epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event)) die("epoll_ctl");
}

static void send_next(struct client *c)
{
	c->at = -1;
	if (next_line == first + count || now() - began > seconds) return;
	c->at = next_line++;
	c->received = 0, c->length = -1;
	struct line *line = &lines[c->at];
	char request[LINE];
	int length = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", line->method, line->target,
		line->host, strcmp(line->method, "POST") ? "" : "Content-Length: 0\r\n");
	c->sent = now();
	in_flight++;
	/* A request is far smaller than an empty socket's buffer: what does not fit is a broken connection. */
	if (send(c->fd, request, length, MSG_NOSIGNAL) != length) shutdown(c->fd, SHUT_RDWR);
}

/* The client is done with its line, well or not. */
static void finish(struct client *c, int well)
{
	in_flight--;
	if (well) {
		answered++;
		double micros = (now() - c->sent) * 1e6;
		times[c->at - first] = micros < 1 ? 1 : micros > UINT32_MAX ? UINT32_MAX : (uint32_t)micros;
	} else {
		errors++;
		c->kept[c->received < 200 ? c->received : 200] = 0;
		if (errors <= 3) fprintf(stderr, "%s %s%s: %s\n", lines[c->at].method, lines[c->at].host, lines[c->at].target, c->kept);
		close(c->fd);
		connect_client(c);
	}
	send_next(c);
}

static int is_right(struct client *c, const char *body)
{
	struct line *line = &lines[c->at];
	char expected[LINE];
	int length = snprintf(expected, sizeof expected, "<!-- %s %s -->", line->host, line->target);
	return !strcmp(line->method, "POST") || !strncmp(body, expected, length);
}

static void readable(struct client *c)
{
	static char spill[65536];
	int keeps = c->received < KEPT;
	ssize_t n = keeps ? recv(c->fd, c->kept + c->received, KEPT - c->received, MSG_DONTWAIT)
		: recv(c->fd, spill, sizeof spill, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
	if (c->at < 0) {
		if (n <= 0) epoll_ctl(poller, EPOLL_CTL_DEL, c->fd, NULL);
		return;
	}
	if (n <= 0) return finish(c, 0);
	c->received += n;
	if (keeps && c->length < 0) {
		c->kept[c->received] = 0;
		char *body = strstr(c->kept, "\r\n\r\n");
		if (!body) {
			if (c->received == KEPT) finish(c, 0);
			return;
		}
		char *length = strcasestr(c->kept, "\r\ncontent-length:");
		if (!length || length > body || strncmp(c->kept, "HTTP/1.1 200", 12)) return finish(c, 0);
		c->length = body + 4 - c->kept + atol(length + 17);
		with_word += word && memmem(c->kept, body - c->kept, word, strlen(word));
	}
	if (c->received < c->length) return;
	finish(c, c->received == c->length && is_right(c, strstr(c->kept, "\r\n\r\n") + 4));
}

static long read_log(const char *path)
{
	FILE *log = fopen(path, "r");
	long held = 0, room = 0;
	if (!log) die(path);
	for (;; held++) {
		if (held == room && !(lines = realloc(lines, (room = room ? 2 * room : 4096) * sizeof *lines))) die("realloc");
		if (fscanf(log, "%7s %63s %127s", lines[held].method, lines[held].host, lines[held].target) != 3) break;
	}
	fclose(log);
	return held;
}

int main(int argc, char **argv)
{
	if (argc != 8 && argc != 9) return fprintf(stderr, "usage: player PORT LOG FIRST COUNT CLIENTS SECONDS TIMES [WORD]\n"), 2;
	word = argv[8];
	port = atoi(argv[1]), first = atol(argv[3]), count = atol(argv[4]), seconds = atof(argv[6]);
	int number = atoi(argv[5]);
	long held = read_log(argv[2]);
	if (first < 0 || count < 1 || first + count > held || number < 1 || number > MAX_CLIENTS)
		return fprintf(stderr, "player: no such part of the log, or no such number of clients\n"), 2;
	times = calloc(count, sizeof *times);
	if (!times || (poller = epoll_create1(EPOLL_CLOEXEC)) < 0) die("start");
	next_line = first;
	for (int i = 0; i < number; i++) connect_client(&clients[i]);
	began = now();
	for (int i = 0; i < number; i++) send_next(&clients[i]);
	while (in_flight) {
		struct epoll_event events[64];
		int ready = epoll_wait(poller, events, 64, 1000);
		for (int i = 0; i < ready; i++) readable(events[i].data.ptr);
		if (now() - began > seconds + PATIENCE) errors += in_flight, in_flight = 0;
	}
	double spent = now() - began;
	FILE *out = fopen(argv[7], "wb");
	if (!out || fwrite(times, sizeof *times, count, out) != (size_t)count || fclose(out)) die(argv[7]);
	printf("%ld %ld %.6f", answered, errors, spent);
	if (word) printf(" %ld", with_word);
	printf("\n");
	return 0;
}
