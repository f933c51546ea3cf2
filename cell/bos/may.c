/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who may: the one place.  Restricted mode cannot be left, so BOS_PROGRAM is nobody's; and what the
 * configuration says is changed there and nowhere else, so BOS_IDENTITY is nobody's too. */
#include "cell/bos/inside.h"

afs_err bos_may(const struct rx_caller *caller, bool superuser, enum bos_verb verb)
{
	switch (verb) {
	case BOS_SEE:
		return AFS_OK;
	case BOS_READ:
	case BOS_RUN:
	case BOS_SET:
	case BOS_MEND:
		if (!caller->authenticated || !superuser)
			return AFS_EACCESS;
		return caller->level == RX_LEVEL_CRYPT ? AFS_OK : AFS_ELEVEL;
	case BOS_PROGRAM:
	case BOS_IDENTITY:
	case BOS_VERBS:
		break;
	}
	return AFS_EACCESS;
}
