/* SPDX-License-Identifier: BSD-2-Clause */
#include "rx/sec/token.h"

const char *rx_level_text(enum rx_sec_level level)
{
	return level == RX_LEVEL_CLEAR ? "clear" : level == RX_LEVEL_AUTH ? "auth" : "crypt";
}

wall_ns rx_token_expires(const struct rx_token *t)
{
	return rx_token_has_gk(t) ? t->gk.terms.expires : t->kad.expires;
}

struct rx_sec *rx_token_client(const struct rx_token *t, enum rx_sec_level level, wall_ns now, const struct rxgk_random *random)
{
	if (rx_token_has_gk(t))
		return rxgk_client_new(&t->gk, RX_SEC_YFS_RXGK, (uint64_t)now / 100, random);
	return rx_token_has_kad(t) ? rxkad_client_new(&t->kad, level) : NULL;
}
