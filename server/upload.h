/* upload.h - the rest of a long body, read from its socket past libmicrohttpd.
 *
 * Door: upload_consider() after a piece of a body that came through the library; if much is to
 * come, the connection is taken (connection.h), and upload_on_readable() reads. The library asks
 * for 32 KiB at a time and waits before each; here the client is waited for until 256 KiB are
 * there, or the rest, and a system call brings up to 1 MiB, to where the operand is held or the
 * stream wants it: smaller calls were half as fast on 16 cores. Measured: receiving and adding so
 * costs less than the library's receiving alone, by a third where the operands come in turn; rows
 * of 2 MiB and more, which are held and not added as they come, cost a quarter less than through
 * the library.
 *
 * The library still waits for those bytes when they have been read. So the answer is sent past it
 * as well, all at once: only a body whose answer the socket has room for is taken. Then the
 * library's connection ends, and the client's goes on as a new one (loop_renew()). That costs 25 to
 * 45 us, most of it for the memory that the library maps for a connection and unmaps after it.
 */
#ifndef SERVER_UPLOAD_H
#define SERVER_UPLOAD_H

struct connection;
struct exchange;

void upload_consider(struct exchange *exchange);
void upload_on_readable(struct connection *connection);

/* Ends the connection of a request that is answered, or whose client has left. */
void upload_end(struct exchange *exchange);

#endif
