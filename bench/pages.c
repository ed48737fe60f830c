/* The origin of the shared tier's bench: GET /KIND/BYTES/DELAY/ANYTHING is answered after DELAY milliseconds with a body of
   that many bytes which begins with <!-- HOST TARGET -->, so that each page is told from every other. It counts the requests
   that it answered.
   KIND: text (words, which compress), noise (bytes, which do not), private (text that no cache may store).
   usage: pages PORT COUNTERFILE   (the counter is one native-endian 64-bit number, mapped and shared) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 65536, MAX_HEAD = 4096, MAX_BODY = 16 << 20, MAX_LATE = 65536 };

struct connection {
	size_t held;
	char head[MAX_HEAD + 1];
};

/* A response that is due later. One whose client closed has fd -1. */
struct late {
	double due;
	int fd;
	char host[64], target[128];
};

static struct connection *connections[MAX_CONNECTIONS];
static struct late late[MAX_LATE];
static int waiting;
static volatile uint64_t *counter;

static const char *const WORDS[] = {
	"the", "resin", "of", "a", "small", "cypress", "hardens", "to", "pale", "tears", "that", "dissolve", "in", "spirit", "and",
	"dry", "clear", "film", "which", "painters", "spread", "over", "finished", "picture", "so", "dust", "<em>light</em>",
	"may", "not", "reach", "colours</p>\n<p class=\"body\">", "beneath",
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
	return *state;
}

static void fill(char *body, long length, const char *host, const char *target, int is_noise)
{
	uint64_t state = 0xcbf29ce484222325;
	for (const char *p = target; *p; p++) state = (state ^ (unsigned char)*p) * 0x100000001b3;
	char mark[256];
	long at = snprintf(mark, sizeof mark, "<!-- %s %s -->", host, target);
	memcpy(body, mark, at = at < length ? at : length);
	while (at < length) {
		uint64_t drawn = draw(&state);
		const char *bytes = is_noise ? (char *)&drawn : WORDS[drawn >> 59];
		long n = is_noise ? (long)sizeof drawn : (long)strlen(bytes);
		if (n > length - at) n = length - at;
		memcpy(body + at, bytes, n);
		at += n;
		if (!is_noise && at < length) body[at++] = ' ';
	}
}

static void respond(int fd, const char *host, const char *target)
{
	static char bytes[MAX_HEAD + MAX_BODY];
	long body = atol(strchr(target + 1, '/') + 1);
	int is_noise = !strncmp(target, "/noise/", 7), is_private = !strncmp(target, "/private/", 9);
	time_t seconds = time(NULL);
	char date[64];
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&seconds));
	size_t head = sprintf(bytes, "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: %s\r\nContent-Type: %s\r\nContent-Length: %ld\r\n"
		"Last-Modified: Sat, 21 Nov 2020 08:00:12 GMT\r\nCache-Control: %s\r\n\r\n", date,
		is_noise ? "image/webp" : "text/html", body, is_private ? "private, no-store" : "public, max-age=3600");
	fill(bytes + head, body, host, target, is_noise);
	++*counter;
	for (size_t sent = 0; sent < head + body;) {
		ssize_t n = send(fd, bytes + sent, head + body - sent, MSG_NOSIGNAL);
		if (n < 0) return;
		sent += n;
	}
}

/* Takes every whole head that has arrived; -1 when the connection is to be closed. */
static int take(int fd, struct connection *c)
{
	char *start = c->head, *end;
	while ((end = memmem(start, c->head + c->held - start, "\r\n\r\n", 4))) {
		*end = 0;
		struct late page = { .fd = fd };
		long bytes;
		int delay;
		char *host = strcasestr(start, "\r\nhost:");
		if (sscanf(start, "GET %127s", page.target) != 1 || !host || sscanf(host + 7, " %63s", page.host) != 1) return -1;
		if (sscanf(page.target, "/%*[a-z]/%ld/%d/", &bytes, &delay) != 2 || bytes < 0 || bytes > MAX_BODY) return -1;
		if (!delay) {
			respond(fd, page.host, page.target);
		} else {
			if (waiting == MAX_LATE) return -1;
			page.due = now() + delay * 1e-3;
			late[waiting++] = page;
		}
		start = end + 4;
	}
	c->held -= start - c->head;
	memmove(c->head, start, c->held);
	return c->held == MAX_HEAD ? -1 : 0;
}

/* Sends what is due; returns the milliseconds until the next is, or -1. */
static int send_due(void)
{
	double soonest = 0;
	int kept = 0;
	for (int i = 0; i < waiting; i++) {
		if (late[i].fd < 0) continue;
		if (late[i].due <= now()) {
			respond(late[i].fd, late[i].host, late[i].target);
			continue;
		}
		if (!soonest || late[i].due < soonest) soonest = late[i].due;
		late[kept++] = late[i];
	}
	waiting = kept;
	return soonest ? (int)((soonest - now()) * 1e3) + 1 : -1;
}

int main(int argc, char **argv)
{
	if (argc != 3) return fprintf(stderr, "usage: pages PORT COUNTERFILE\n"), 2;
	int one = 1, file = open(argv[2], O_RDWR | O_CREAT, 0644);
	if (file < 0 || ftruncate(file, sizeof *counter)) return perror(argv[2]), 1;
	counter = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (counter == MAP_FAILED) return perror("mmap"), 1;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (bind(listener, (void *)&a, sizeof a) || listen(listener, 4096)) return perror("bind"), 1;
	int ep = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = listener }, events[256];
	epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev);
	for (;;) {
		int n = epoll_wait(ep, events, 256, send_due());
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;
			if (fd == listener) {
				int client = accept4(listener, NULL, NULL, 0);
				if (client < 0) continue;
				if (client >= MAX_CONNECTIONS || !(connections[client] = calloc(1, sizeof(struct connection)))) {
					close(client);
					continue;
				}
				setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
				ev.events = EPOLLIN, ev.data.fd = client;
				epoll_ctl(ep, EPOLL_CTL_ADD, client, &ev);
				continue;
			}
			struct connection *c = connections[fd];
			ssize_t got = recv(fd, c->head + c->held, MAX_HEAD - c->held, 0);
			if (got > 0) c->held += got;
			if (got <= 0 || take(fd, c)) {
				for (int j = 0; j < waiting; j++)
					if (late[j].fd == fd) late[j].fd = -1;
				close(fd);
				free(c);
			}
		}
	}
}
