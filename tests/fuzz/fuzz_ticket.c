/* SPDX-License-Identifier: BSD-2-Clause
 * Tickets as a stranger's RESPONSE brings them, and what is inside them after the seal.  The first byte
 * chooses the reader. */
#include "cell/base/buf.h"
#include "cell/keys/ticket.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What any accepted ticket must hold, whatever its bytes. */
static void check(const struct rxkad_ticket *t)
{
	const char *const parts[] = {t->name, t->instance, t->cell};
	for (size_t i = 0; i < 3; i++) {
		if (!memchr(parts[i], 0, RX_NAME_MAX) || strpbrk(parts[i], "@:\n\t\r"))
			abort();
	}
	if (!t->name[0] || strchr(t->name, '.'))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const wall_ns now = SEC(1796063192);
	struct rxkad_ticket t;
	struct k5_sealed sealed;
	if (size < 1)
		return 0;
	const uint8_t *p = data + 1;
	size_t n = size - 1;
	switch (data[0] & 3) {
	case 0:
	case 1:
		if (k5_sealed_dec(data[0] & 1 ? TICKET_V5 : TICKET_V5_PART, p, n, &sealed) ==
				AFS_OK &&
			(sealed.cipher.n > n || (sealed.cipher.n && sealed.cipher.p < p)))
			abort();
		break;
	case 2:
		if (k5_part_dec(p, n, now, false, &t) == AFS_OK)
			check(&t);
		break;
	case 3:
		if (k4_dec(p, n, now, &t) == AFS_OK)
			check(&t);
		break;
	}
	return 0;
}
