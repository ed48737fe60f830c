/* The floor of the shared tier: the least that a proxy in front of memcached can do. It reads GETs from keep-alive
   clients, asks memcached for the target over one connection (`mg TARGET v`), and sends the value with a short head.
   Level-triggered epoll; no lookup, no verification, no copy of the value.
   usage: relay PORT MEMCACHEDPORT */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 65536, MAX_HEAD = 4096, MAX_REPLIES = 4 << 20, WAITING = 65536 };

struct client {
	size_t held;
	char head[MAX_HEAD];
};

static struct client *clients[MAX_CONNECTIONS];
/* The clients that wait for a reply, in the order of the replies. A client that closed meanwhile is -1. */
static int waiting[WAITING];
static unsigned first, last;
static char replies[MAX_REPLIES];
static size_t held;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void write_all(int fd, struct iovec *part, int parts)
{
	while (parts) {
		struct msghdr message = { .msg_iov = part, .msg_iovlen = parts };
		ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);
		if (n < 0) return;
		for (; parts && (size_t)n >= part->iov_len; part++, parts--) n -= part->iov_len;
		if (parts) part->iov_base = (char *)part->iov_base + n, part->iov_len -= n;
	}
}

static void drop(int fd)
{
	for (unsigned i = first; i != last; i++)
		if (waiting[i % WAITING] == fd) waiting[i % WAITING] = -1;
	free(clients[fd]);
	clients[fd] = NULL;
	close(fd);
}

/* Asks memcached for every whole head that has arrived. */
static void from_client(int fd, int cache)
{
	struct client *c = clients[fd];
	ssize_t got = recv(fd, c->head + c->held, MAX_HEAD - c->held, 0);
	if (got <= 0) return drop(fd);
	c->held += got;
	char *start = c->head, *end;
	while ((end = memmem(start, c->head + c->held - start, "\r\n\r\n", 4))) {
		char *target = start + 4, *after = memchr(target, ' ', end - target);
		if (memcmp(start, "GET ", 4) || !after || after - target > 250) return drop(fd);
		char command[300];
		int length = sprintf(command, "mg %.*s v\r\n", (int)(after - target), target);
		waiting[last++ % WAITING] = fd;
		if (send(cache, command, length, MSG_NOSIGNAL) != length) die("memcached");
		start = end + 4;
	}
	c->held -= start - c->head;
	memmove(c->head, start, c->held);
	if (c->held == MAX_HEAD) drop(fd);
}

/* Sends every whole value that has arrived to its client. */
static void from_cache(int cache)
{
	ssize_t got = recv(cache, replies + held, MAX_REPLIES - held, 0);
	if (got <= 0) die("memcached");
	held += got;
	char *start = replies, *line;
	while ((line = memchr(start, '\n', replies + held - start))) {
		char *value = line + 1, head[128];
		long length = memcmp(start, "VA ", 3) ? -1 : atol(start + 3);
		if (length >= 0 && replies + held - value < length + 2) break;
		int fd = waiting[first++ % WAITING];
		int n = sprintf(head, "HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %ld\r\n\r\n",
			length < 0 ? "404 Not Found" : "200 OK", length < 0 ? 0 : length);
		struct iovec parts[] = { { head, n }, { value, length < 0 ? 0 : length } };
		if (fd >= 0) write_all(fd, parts, 2);
		start = length < 0 ? value : value + length + 2;
	}
	held -= start - replies;
	memmove(replies, start, held);
	if (held == MAX_REPLIES) die("value too large");
}

static int loopback(int port, int (*use)(int, const struct sockaddr *, socklen_t))
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (use(fd, (void *)&a, sizeof a)) die("socket");
	return fd;
}

int main(int argc, char **argv)
{
	if (argc != 3) return fprintf(stderr, "usage: relay PORT MEMCACHEDPORT\n"), 2;
	int one = 1, cache = loopback(atoi(argv[2]), connect), listener = loopback(atoi(argv[1]), bind);
	if (listen(listener, 4096)) die("listen");
	int ep = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = listener }, events[256];
	epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev);
	ev.data.fd = cache;
	epoll_ctl(ep, EPOLL_CTL_ADD, cache, &ev);
	for (;;) {
		int n = epoll_wait(ep, events, 256, -1);
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;
			if (fd == cache) {
				from_cache(cache);
			} else if (fd != listener) {
				from_client(fd, cache);
			} else {
				int client = accept4(listener, NULL, NULL, 0);
				if (client < 0) continue;
				if (client >= MAX_CONNECTIONS || !(clients[client] = calloc(1, sizeof(struct client)))) {
					close(client);
					continue;
				}
				setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
				ev.events = EPOLLIN, ev.data.fd = client;
				epoll_ctl(ep, EPOLL_CTL_ADD, client, &ev);
			}
		}
	}
}
