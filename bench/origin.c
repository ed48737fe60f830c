/* The origin of the bench: answers GET and POST /BYTES with that many bytes, cacheable for an hour, and counts the requests
   it answered, so that the bench can prove a hit was a hit and a pass was a pass. Unlike the floor it finds the end
   of each head, because proxies may pipeline or split requests.
   usage: origin PORT COUNTERFILE   (the counter is one native-endian 64-bit number, mapped and shared) */
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

enum { MAX_CONNECTIONS = 65536, MAX_HEAD = 8192, MAX_BODY = 16 << 20, SIZES = 16 };

/* One response per size asked for; the head is rebuilt when the second changes, because a cache computes age from Date. */
struct response {
	long body;
	size_t length;
	time_t made;
	char *bytes;
};

struct connection {
	size_t held;
	long skipped; /* bytes of a request's body that are still to come */
	long owed;    /* bytes of the response that follows it, or 0 */
	char head[MAX_HEAD];
};

static struct response responses[SIZES];
static struct connection *connections[MAX_CONNECTIONS];

static struct response *response_of(long body)
{
	struct response *r = responses;
	while (r < responses + SIZES && r->bytes && r->body != body) r++;
	if (r == responses + SIZES) return NULL;
	time_t now = time(NULL);
	if (r->bytes && r->made == now) return r;
	if (!r->bytes && !(r->bytes = malloc(1024 + body))) return NULL;
	char date[64];
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&now));
	size_t head = sprintf(r->bytes, "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: %s\r\nContent-Type: text/html\r\n"
		"Content-Length: %ld\r\nLast-Modified: Sat, 21 Nov 2020 08:00:12 GMT\r\nETag: \"6b014f8c-%lx\"\r\n"
		"Cache-Control: public, max-age=3600\r\n\r\n", date, body, body);
	/* A body whose every part is different shows a shifted or repeated block when it is compared. */
	for (long i = 0; i < body; i++) r->bytes[head + i] = 'a' + (i + i / 26 + i / 4096) % 26;
	r->body = body, r->length = head + body, r->made = now;
	return r;
}

static int write_all(int fd, const char *bytes, size_t length)
{
	for (size_t sent = 0; sent < length;) {
		ssize_t n = send(fd, bytes + sent, length - sent, MSG_NOSIGNAL);
		if (n < 0) return -1;
		sent += n;
	}
	return 0;
}

/* Answers every whole head that has arrived; -1 when the connection is to be closed. */
static int answer(int fd, struct connection *c, volatile uint64_t *counter)
{
	char *start = c->head, *end;
	for (;;) {
		long skip = c->head + c->held - start;
		if (skip > c->skipped) skip = c->skipped;
		start += skip, c->skipped -= skip;
		if (!c->skipped && c->owed) {
			struct response *late = response_of(c->owed);
			c->owed = 0;
			if (!late || write_all(fd, late->bytes, late->length)) return -1;
		}
		if (c->skipped || !(end = memmem(start, c->head + c->held - start, "\r\n\r\n", 4))) break;
		long body = !strncmp(start, "GET /", 5) ? atol(start + 5) : !strncmp(start, "POST /", 6) ? atol(start + 6) : -1;
		if (body < 0 || body > MAX_BODY) return -1;
		struct response *r = response_of(body);
		if (!r) return -1;
		++*counter;
		*end = 0;
		char *announced = strcasestr(start, "\r\nContent-Length:");
		c->skipped = announced ? atol(announced + 17) : 0;
		if (c->skipped > 0) {
			c->owed = body;
		} else if (write_all(fd, r->bytes, r->length) || strcasestr(start, "\r\nConnection: close")) {
			return -1;
		}
		start = end + 4;
	}
	c->held -= start - c->head;
	memmove(c->head, start, c->held);
	return c->held == MAX_HEAD ? -1 : 0;
}

int main(int argc, char **argv)
{
	if (argc != 3) return fprintf(stderr, "usage: origin PORT COUNTERFILE\n"), 2;
	int one = 1, file = open(argv[2], O_RDWR | O_CREAT, 0644);
	if (file < 0 || ftruncate(file, sizeof(uint64_t))) return perror(argv[2]), 1;
	volatile uint64_t *counter = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (counter == MAP_FAILED) return perror("mmap"), 1;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (bind(listener, (void *)&a, sizeof a) || listen(listener, 4096)) return perror("bind"), 1;
	int ep = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = listener }, events[256];
	epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev);
	for (;;) {
		int n = epoll_wait(ep, events, 256, -1);
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
			if (got <= 0 || answer(fd, c, counter)) {
				close(fd);
				free(c);
			}
		}
	}
}
