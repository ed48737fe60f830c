/* Asks memcached itself for the targets of a part of a log, one after the other over one connection (`mg TARGET v`): what a
   hit costs without a proxy. Each value must begin with <!-- HOST TARGET -->.
   usage: mget PORT LOG FIRST COUNT TIMES
   LOG, TIMES and what is printed are those of player.c. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_REPLY = 4 << 20 };

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

/* Whether the value of the target arrived. */
static int ask(int fd, const char *host, const char *target)
{
	static char reply[MAX_REPLY + 1];
	char command[300], expected[300];
	int length = snprintf(command, sizeof command, "mg %s v\r\n", target);
	int begins = snprintf(expected, sizeof expected, "<!-- %s %s -->", host, target);
	if (send(fd, command, length, MSG_NOSIGNAL) != length) die("send");
	long held = 0, all = -1;
	char *value = NULL;
	while (all < 0 || held < all) {
		ssize_t n = recv(fd, reply + held, MAX_REPLY - held, 0);
		if (n <= 0) die("recv");
		held += n;
		char *line = all < 0 ? memchr(reply, '\n', held) : NULL;
		if (!line) continue;
		if (memcmp(reply, "VA ", 3)) return 0;
		value = line + 1;
		all = value - reply + atol(reply + 3) + 2;
	}
	return held == all && !memcmp(value, expected, begins);
}

int main(int argc, char **argv)
{
	if (argc != 6) return fprintf(stderr, "usage: mget PORT LOG FIRST COUNT TIMES\n"), 2;
	long first = atol(argv[3]), count = atol(argv[4]), answered = 0, errors = 0;
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (connect(fd, (struct sockaddr *)&to, sizeof to)) die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	FILE *log = fopen(argv[2], "r");
	uint32_t *times = calloc(count, sizeof *times);
	if (!log || !times) die(argv[2]);
	double began = now();
	char host[64], target[128];
	for (long at = 0; at < first + count && fscanf(log, "%*s %63s %127s", host, target) == 2; at++) {
		if (at < first) continue;
		double sent = now();
		int well = ask(fd, host, target);
		double micros = (now() - sent) * 1e6;
		if (well) answered++, times[at - first] = micros < 1 ? 1 : (uint32_t)micros;
		else errors++;
	}
	double spent = now() - began;
	FILE *out = fopen(argv[5], "wb");
	if (!out || fwrite(times, sizeof *times, count, out) != (size_t)count || fclose(out)) die(argv[5]);
	printf("%ld %ld %.6f\n", answered, errors, spent);
	return 0;
}
