/* The floor of pass: the least a keep-alive proxy can do on this kernel. Level-triggered epoll, one recv and one send
   per readable event, nothing parsed: each client has a connection to the origin of its own, opened with the first
   bytes and kept, so that bytes need no owner but the connection they came from.
   usage: floor_pass PORT ORIGINPORT */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_READ = 65536, EVENTS = 256 };

/* One end of an exchange. `held` bytes were read from it that the other end did not take yet; nothing more is read
   until they are gone, so that at most MAX_READ are held. */
struct end {
	int fd;
	uint32_t watched;
	struct pair *pair;
	char *bytes;
	size_t start, held;
};

struct pair {
	struct end client, origin;
	int closed;
	struct pair *next;
};

static int ep;
static struct sockaddr_in origin_address;
/* Pairs closed during a round of events, of which more may name them: freed after it. */
static struct pair *closed;

static struct end *other(struct end *e)
{
	return e == &e->pair->client ? &e->pair->origin : &e->pair->client;
}

static void close_pair(struct pair *p)
{
	if (p->closed) return;
	close(p->client.fd);
	if (p->origin.fd >= 0) close(p->origin.fd);
	p->closed = 1, p->next = closed, closed = p;
}

static void free_closed(void)
{
	for (struct pair *p; (p = closed);) {
		closed = p->next;
		free(p->client.bytes);
		free(p->origin.bytes);
		free(p);
	}
}

static int open_end(struct end *e, struct pair *p, int fd)
{
	int one = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	e->fd = fd, e->pair = p, e->watched = EPOLLIN;
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = e };
	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
}

static int open_origin(struct pair *p)
{
	int fd = p->origin.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0) return -1;
	if (connect(fd, (void *)&origin_address, sizeof origin_address) && errno != EINPROGRESS) return -1;
	return open_end(&p->origin, p, fd);
}

static int watch(struct end *e)
{
	uint32_t wanted = (e->held ? 0 : EPOLLIN) | (other(e)->held ? EPOLLOUT : 0);
	if (wanted == e->watched) return 0;
	struct epoll_event ev = { .events = e->watched = wanted, .data.ptr = e };
	return epoll_ctl(ep, EPOLL_CTL_MOD, e->fd, &ev);
}

/* How many bytes the kernel took; -1 when the connection is broken. */
static ssize_t send_some(int fd, const char *bytes, size_t length)
{
	ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
	return n < 0 && errno == EAGAIN ? 0 : n;
}

/* Moves what is to be read; what the other end does not take is held. -1 when either end is closed or broken. */
static int forward(struct end *from)
{
	static char buffer[MAX_READ];
	ssize_t got = recv(from->fd, buffer, sizeof buffer, 0);
	if (got <= 0) return got < 0 && errno == EAGAIN ? 0 : -1;
	struct end *to = other(from);
	if (to->fd < 0 && open_origin(from->pair)) return -1;
	ssize_t sent = send_some(to->fd, buffer, got);
	if (sent < 0) return -1;
	if (sent == got) return 0;
	if (!from->bytes && !(from->bytes = malloc(MAX_READ))) return -1;
	from->start = 0, from->held = got - sent;
	memcpy(from->bytes, buffer + sent, from->held);
	return watch(from) || watch(to) ? -1 : 0;
}

/* Sends what is held for an end that takes bytes again. */
static int drain(struct end *to)
{
	struct end *from = other(to);
	ssize_t sent = send_some(to->fd, from->bytes + from->start, from->held);
	if (sent < 0) return -1;
	from->start += sent, from->held -= sent;
	return watch(from) || watch(to) ? -1 : 0;
}

static int work(struct end *e, uint32_t events)
{
	if (events & EPOLLOUT && other(e)->held && drain(e)) return -1;
	if (!e->held) return events & ~EPOLLOUT ? forward(e) : 0;
	return events & (EPOLLHUP | EPOLLERR) ? -1 : 0;
}

static void accept_client(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	if (fd < 0) return;
	struct pair *p = calloc(1, sizeof *p);
	if (!p) {
		close(fd);
		return;
	}
	p->origin.fd = -1;
	if (open_end(&p->client, p, fd)) close_pair(p);
}

int main(int argc, char **argv)
{
	if (argc != 3) return fprintf(stderr, "usage: floor_pass PORT ORIGINPORT\n"), 2;
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (bind(listener, (void *)&a, sizeof a) || listen(listener, 4096)) return perror("bind"), 1;
	origin_address = a;
	origin_address.sin_port = htons(atoi(argv[2]));
	ep = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL }, events[EVENTS];
	epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev);
	for (;;) {
		int n = epoll_wait(ep, events, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			struct end *e = events[i].data.ptr;
			if (!e)
				accept_client(listener);
			else if (!e->pair->closed && work(e, events[i].events))
				close_pair(e->pair);
		}
		free_closed();
	}
}
