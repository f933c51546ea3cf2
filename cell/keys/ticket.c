/* SPDX-License-Identifier: BSD-2-Clause
 * Kerberos 5 tickets: the two forms in which they travel, and the part only the service can read.
 *
 * Every field is taken in its order; a field of an unexpected tag makes the whole ticket bad. */
#include "cell/keys/ticket.h"

#include <string.h>

enum { COMPONENTS_MAX = 2, FLAG_INVALID = 0x01 /* bit 7: in the first byte */ };

static const wall_ns skew = SEC(15 * 60);
static const wall_ns longest = SEC(30 * 86400);

/* --- fields: each explicit tag holds exactly one element ----------------------------------- */

static int64_t field_integer(struct der *seq, int n)
{
	struct der f = der_enter(seq, (uint8_t)(DER_CONTEXT | n));
	int64_t v = der_integer(&f);
	seq->bad |= !der_done(&f);
	return v;
}

static struct der_bytes field_bytes(struct der *seq, int n, uint8_t tag)
{
	struct der f = der_enter(seq, (uint8_t)(DER_CONTEXT | n));
	struct der_bytes b = der_bytes(&f, tag);
	seq->bad |= !der_done(&f);
	return b;
}

static wall_ns field_time(struct der *seq, int n)
{
	struct der f = der_enter(seq, (uint8_t)(DER_CONTEXT | n));
	wall_ns t = der_time(&f);
	seq->bad |= !der_done(&f);
	return t;
}

static struct der field_sequence(struct der *seq, int n)
{
	struct der f = der_enter(seq, (uint8_t)(DER_CONTEXT | n));
	struct der inside = der_enter(&f, DER_SEQUENCE);
	seq->bad |= !der_done(&f);
	inside.bad |= seq->bad;
	return inside;
}

/* --- the outside -------------------------------------------------------------------------- */

afs_err k5_sealed_dec(int32_t kind, const uint8_t *ticket, size_t len, struct k5_sealed *out)
{
	struct der in = der_of(ticket, len), seq;
	if (kind == TICKET_V5) {
		/* Ticket ::= [APPLICATION 1] SEQUENCE { tkt-vno, realm, sname, enc-part }.  Realm and
		 * service name are in clear and prove nothing: only the key does. */
		struct der app = der_enter_only(&in, DER_APPLICATION | 1);
		struct der t = der_enter_only(&app, DER_SEQUENCE);
		t.bad |= field_integer(&t, 0) != 5;
		(void)field_bytes(&t, 1, DER_TEXT);
		(void)field_sequence(&t, 2);
		seq = field_sequence(&t, 3);
		seq.bad |= !der_done(&t);
	} else {
		seq = der_enter_only(&in, DER_SEQUENCE);
	}
	/* EncryptedData ::= SEQUENCE { etype, kvno OPTIONAL, cipher } */
	int64_t enctype = field_integer(&seq, 0);
	int64_t kvno = der_next_is(&seq, DER_CONTEXT | 1) ? field_integer(&seq, 1) : 0;
	struct der_bytes cipher = field_bytes(&seq, 2, DER_OCTETS);
	if (!der_done(&seq) || enctype != (int32_t)enctype || kvno < INT32_MIN || kvno > UINT32_MAX)
		return AFS_EBADTICKET;
	*out = (struct k5_sealed){(int32_t)enctype, (int32_t)(uint32_t)kvno, cipher};
	return AFS_OK;
}

bool k5_sealed_enc(const struct k5_sealed *s, uint8_t *out, size_t cap, size_t *len)
{
	struct der_out o = {out, out + cap, false};
	const uint8_t *end = o.p, *mark = o.p;
	der_put_bytes(&o, DER_OCTETS, s->cipher.p, s->cipher.n);
	der_wrap(&o, DER_CONTEXT | 2, mark);
	mark = o.p;
	der_put_integer(&o, s->kvno);
	der_wrap(&o, DER_CONTEXT | 1, mark);
	mark = o.p;
	der_put_integer(&o, s->enctype);
	der_wrap(&o, DER_CONTEXT | 0, mark);
	der_wrap(&o, DER_SEQUENCE, end);
	*len = (size_t)(end - o.p);
	memmove(out, o.p, *len);
	return !o.full;
}

/* --- the inside --------------------------------------------------------------------------- */

afs_err ticket_times(wall_ns begins, wall_ns expires, bool never, wall_ns now, wall_ns late)
{
	if (!never && begins >= expires)
		return AFS_EBADTICKET;
	if (!never && expires < now - late)
		return AFS_EEXPIRED;
	if (begins > now + skew)
		return AFS_ENOAUTH;
	if (!never && begins != 0 && expires - longest > begins)
		return AFS_EBADTICKET;
	return AFS_OK;
}

afs_err k5_part_dec(
	const uint8_t *part, size_t len, wall_ns now, bool allow_dotted, struct rxkad_ticket *out)
{
	struct der in = der_of(part, len);
	struct der app = der_enter(&in, DER_APPLICATION | 3);
	struct der seq = der_enter_only(&app, DER_SEQUENCE);

	struct der_bytes flags = field_bytes(&seq, 0, DER_BITS);
	struct der key = field_sequence(&seq, 1);
	int64_t enctype = field_integer(&key, 0);
	struct der_bytes session = field_bytes(&key, 1, DER_OCTETS);
	seq.bad |= !der_done(&key);
	struct der_bytes realm = field_bytes(&seq, 2, DER_TEXT);
	struct der cname = field_sequence(&seq, 3);
	(void)field_integer(&cname, 0); /* the kind of name: a hint only */
	struct der names = field_sequence(&cname, 1);
	seq.bad |= !der_done(&cname);
	struct der_bytes comp[COMPONENTS_MAX];
	size_t n = 0;
	while (!names.bad && names.p < names.end && n < COMPONENTS_MAX)
		comp[n++] = der_bytes(&names, DER_TEXT);
	seq.bad |= !der_done(&names);  /* also: more components than AFS can name */
	(void)field_sequence(&seq, 4); /* transited */
	wall_ns begins = field_time(&seq, 5);
	if (der_next_is(&seq, DER_CONTEXT | 6))
		begins = field_time(&seq, 6);
	wall_ns expires = field_time(&seq, 7);
	/* renew-till, addresses and authorization data (a PAC makes it large) are not looked at */
	for (int f = 8; f <= 10; f++)
		if (der_next_is(&seq, (uint8_t)(DER_CONTEXT | f)))
			der_skip(&seq);
	if (!der_done(&seq) || flags.n < 2 || enctype != (int32_t)enctype)
		return AFS_EBADTICKET;
	if (flags.p[1] & FLAG_INVALID)
		return AFS_ENOAUTH;

	struct rxkad_ticket t = {.begins = begins, .expires = expires};
	TRY(ticket_times(begins, expires, false, now, 0));
	TRY(ticket_name(comp, n, realm, allow_dotted, &t));
	TRY(rxkad_kdf((int32_t)enctype, session.p, session.n, t.session_key));
	*out = t;
	explicit_bzero(&t, sizeof(t));
	return AFS_OK;
}

/* Flags: transited-policy-checked.  A client without a realm, valid from 1970 to the end of 32-bit
 * time.  Source: protocol rx-security.md §9.1, captured from OpenAFS 1.8.9. */
bool k5_local_part_enc(const uint8_t session[8], uint8_t *out, size_t cap, size_t *len)
{
	static const uint8_t flags[] = {0, 0x00, 0x08, 0x00, 0x00};
	struct der_out o = {out, out + cap, false};
	const uint8_t *end = o.p, *field = o.p, *inner;

	der_put_time(&o, SEC(INT32_MAX));
	der_wrap(&o, DER_CONTEXT | 7, field);
	field = o.p;
	der_put_time(&o, 0);
	der_wrap(&o, DER_CONTEXT | 5, field);

	field = inner = o.p;
	der_put_bytes(&o, DER_OCTETS, NULL, 0);
	der_wrap(&o, DER_CONTEXT | 1, inner);
	inner = o.p;
	der_put_integer(&o, 0);
	der_wrap(&o, DER_CONTEXT | 0, inner);
	der_wrap(&o, DER_SEQUENCE, field);
	der_wrap(&o, DER_CONTEXT | 4, field);

	field = inner = o.p;
	der_put_bytes(&o, DER_TEXT, "afs", 3);
	der_wrap(&o, DER_SEQUENCE, inner);
	der_wrap(&o, DER_CONTEXT | 1, inner);
	inner = o.p;
	der_put_integer(&o, 1);
	der_wrap(&o, DER_CONTEXT | 0, inner);
	der_wrap(&o, DER_SEQUENCE, field);
	der_wrap(&o, DER_CONTEXT | 3, field);

	field = o.p;
	der_put_bytes(&o, DER_TEXT, NULL, 0);
	der_wrap(&o, DER_CONTEXT | 2, field);

	field = inner = o.p;
	der_put_bytes(&o, DER_OCTETS, session, 8);
	der_wrap(&o, DER_CONTEXT | 1, inner);
	inner = o.p;
	der_put_integer(&o, 1);
	der_wrap(&o, DER_CONTEXT | 0, inner);
	der_wrap(&o, DER_SEQUENCE, field);
	der_wrap(&o, DER_CONTEXT | 1, field);

	field = o.p;
	der_put_bytes(&o, DER_BITS, flags, sizeof(flags));
	der_wrap(&o, DER_CONTEXT | 0, field);
	der_wrap(&o, DER_SEQUENCE, end);
	der_wrap(&o, DER_APPLICATION | 3, end);
	*len = (size_t)(end - o.p);
	memmove(out, o.p, *len);
	return !o.full;
}
