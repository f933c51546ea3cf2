/* SPDX-License-Identifier: BSD-2-Clause
 * One table read both ways; the transport's and the security classes' codes come before it. */
#include "cell/proto/abort.h"

#include "cell/base/mem.h"
#include "rx/sec/security.h"

#include <errno.h>

#define UAE(n) (UAE_BASE + (n))
#define VLE(n) (VL_ERROR_BASE + (n))
#define PRE(n) (PR_ERROR_BASE + (n))
#define VOLE(n) (VOLS_ERROR_BASE + (n))

enum column { FS, VL, PT, VOL, COLUMNS };

static const struct {
	afs_err err;
	int32_t code[COLUMNS];
} rows[] = {
#define ABORT(name, fs, vl, pt, vol) {AFS_E##name, {fs, vl, pt, vol}},
#include "cell/proto/abort.def"
#undef ABORT
};

/* Codes that mean the same in every service. */
static const struct {
	afs_err err;
	int32_t code;
} common[] = {
	{AFS_EDEAD, RX_CALL_DEAD},
	{AFS_ENOSERVICE, RX_INVALID_OPERATION},
	{AFS_ETIMEDOUT, RX_CALL_TIMEOUT},
	{AFS_EPROTOCOL, RX_PROTOCOL_ERROR},
	{AFS_ECANCELLED, RX_USER_ABORT},
	{AFS_ERESTARTING, RX_RESTARTING},
	{AFS_EENCODE, RXGEN_SS_MARSHAL},
	{AFS_EDECODE, RXGEN_SS_UNMARSHAL},
	{AFS_EDECODE, RXGEN_DECODE},
	{AFS_EOPCODE, RXGEN_OPCODE},
	{AFS_EOVERLOAD, 110},
};

static int32_t code_of(afs_err err, enum column col)
{
	int32_t sec = rx_sec_code(err);
	if (sec)
		return sec;
	for (size_t i = 0; i < ARRAY_SIZE(common); i++)
		if (common[i].err == err)
			return common[i].code;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].err == err)
			return rows[i].code[col];
	return code_of(AFS_EIO, col);
}

static afs_err err_of(int32_t code, enum column col)
{
	afs_err sec = rx_sec_err(code);
	if (sec)
		return sec;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].code[col] == code)
			return rows[i].err;
	for (size_t i = 0; i < ARRAY_SIZE(common); i++)
		if (common[i].code == code)
			return common[i].err;
	if (col == FS && code >= UAE_BASE && uae_errno((unsigned)(code - UAE_BASE)))
		return afs_err_from_errno(uae_errno((unsigned)(code - UAE_BASE)));
	/* 101..112 are volume codes, handled by their rows above */
	if ((col == FS || col == VOL) && code > 0 && code < 134)
		return afs_err_from_errno(code);
	if (code < 0)
		return AFS_EDEAD;
	return AFS_EABORTED;
}

int32_t abort_of_fs(afs_err err) { return code_of(err, FS); }
int32_t abort_of_vl(afs_err err) { return code_of(err, VL); }
int32_t abort_of_pt(afs_err err) { return code_of(err, PT); }
int32_t abort_of_vol(afs_err err) { return code_of(err, VOL); }
afs_err err_of_fs(int32_t code) { return err_of(code, FS); }
afs_err err_of_vl(int32_t code) { return err_of(code, VL); }
afs_err err_of_pt(int32_t code) { return err_of(code, PT); }
afs_err err_of_vol(int32_t code) { return err_of(code, VOL); }

static const int uae[] = {EPERM, ENOENT, ESRCH, EINTR, EIO, ENXIO, E2BIG, ENOEXEC, EBADF, ECHILD,
	EAGAIN, ENOMEM, EACCES, EFAULT, ENOTBLK, EBUSY, EEXIST, EXDEV, ENODEV, ENOTDIR, EISDIR, EINVAL,
	ENFILE, EMFILE, ENOTTY, ETXTBSY, EFBIG, ENOSPC, ESPIPE, EROFS, EMLINK, EPIPE, EDOM, ERANGE,
	EDEADLK, ENAMETOOLONG, ENOLCK, ENOSYS, ENOTEMPTY, ELOOP, EWOULDBLOCK, ENOMSG, EIDRM, ECHRNG,
	EL2NSYNC, EL3HLT, EL3RST, ELNRNG, EUNATCH, ENOCSI, EL2HLT, EBADE, EBADR, EXFULL, ENOANO,
	EBADRQC, EBADSLT, EBFONT, ENOSTR, ENODATA, ETIME, ENOSR, ENONET, ENOPKG, EREMOTE, ENOLINK,
	EADV, ESRMNT, ECOMM, EPROTO, EMULTIHOP, EDOTDOT, EBADMSG, EOVERFLOW, ENOTUNIQ, EBADFD, EREMCHG,
	ELIBACC, ELIBBAD, ELIBSCN, ELIBMAX, ELIBEXEC, EILSEQ, ERESTART, ESTRPIPE, EUSERS, ENOTSOCK,
	EDESTADDRREQ, EMSGSIZE, EPROTOTYPE, ENOPROTOOPT, EPROTONOSUPPORT, ESOCKTNOSUPPORT, EOPNOTSUPP,
	EPFNOSUPPORT, EAFNOSUPPORT, EADDRINUSE, EADDRNOTAVAIL, ENETDOWN, ENETUNREACH, ENETRESET,
	ECONNABORTED, ECONNRESET, ENOBUFS, EISCONN, ENOTCONN, ESHUTDOWN, ETOOMANYREFS, ETIMEDOUT,
	ECONNREFUSED, EHOSTDOWN, EHOSTUNREACH, EALREADY, EINPROGRESS, ESTALE, EUCLEAN, ENOTNAM, ENAVAIL,
	EISNAM, EREMOTEIO, EDQUOT, ENOMEDIUM, EMEDIUMTYPE, ECANCELED, ENOTRECOVERABLE, ENOTSUP};

int uae_errno(unsigned n) { return n < ARRAY_SIZE(uae) ? uae[n] : 0; }

int uae_index(int eno)
{
	for (size_t i = 0; i < ARRAY_SIZE(uae); i++)
		if (uae[i] == eno)
			return (int)i;
	return -1;
}

int32_t abort_plain_errno(int32_t code)
{
	int eno = code >= UAE_BASE ? uae_errno((unsigned)(code - UAE_BASE)) : 0;
	return eno ? eno : code;
}
