#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Whatever is wrong at a start gets one clear line that says what and what to do, a status that is not
# zero, and leaves nothing behind.
. "$(dirname "$0")/lib.sh"
private "$@"
plan 48
up() { "$afscell" up --config "$work/$1.yaml"; }
down() { "$afscell" down --config "$work/$1.yaml"; }

# --- the configuration
conf yaml 'roles: {client: {prot: 7}}'
check "wrong YAML is refused with its place and a suggestion" \
	fails 'yaml.yaml:4:18: roles.client: unknown key "prot"; did you mean "port"\?' up yaml
check "... and makes nothing" absent yaml
check "config check says the same" fails 'did you mean "port"' "$afscell" config check --config yaml.yaml
check "a configuration that is missing is named" fails 'nowhere.yaml: cannot be read: No such file' up nowhere
check "without any configuration it is told how to get one" \
	fails 'afscell init' env -C / "$afscell" up
check "a configuration of somebody else in the current directory is not believed" sh -c '
	mkdir theirs && cd theirs && cp ../yaml.yaml afscell.yaml && chmod 666 afscell.yaml &&
	! "$0" up 2>&1 | grep prot' "$afscell"

check "a configuration that is named but missing never leads to another cell" \
	fails 'nowhere.yaml: cannot be read: No such file' env AFSCELL_CONFIG="$work/nowhere.yaml" "$afscell" user list
conf outer 'console: {listen: 127.0.0.1}'
check "a key at the wrong depth is told where it belongs" fails 'unknown key "listen"; did you mean "listen", outermost\?' up outer

# --- ports
conf first; conf second 'realm: {kdc_port: 8089}'
check "a cell comes up" up first
check "a port in use is told, with who has it" \
	fails 'UDP port 7002 on 127.0.0.1 is in use by process [0-9]+ \(afscell\); stop that, or set roles.ptserver.port' up second
check "... and makes nothing" absent second
conf kdcport 'roles: {fileserver: {port: 7100}, volserver: {port: 7105}, vlserver: {port: 7103}, ptserver: {port: 7102}, bosserver: {port: 7107}, client: {port: 7101}}'
check "so is the port of the realm" fails 'port 8088 on 127.0.0.1 is in use by process [0-9]+ \(krb5kdc\)' up kdcport
check "... and makes nothing" absent kdcport
conf elsewhere 'listen: [192.0.2.7]'
check "an address that is not ours is told" fails '192.0.2.7 is no address of this machine' up elsewhere
check "... and makes nothing" absent elsewhere

# --- a second start on the same state
check "a second up of the same cell says that it runs" says 'runs already \(process [0-9]+\): nothing to change' up first
check "in the foreground it is an error" fails 'process [0-9]+ runs the cell first.test already' \
	"$afscell" up -f --config first.yaml
CELL=other.test conf other; sed -i "s|$work/other|$work/first|" other.yaml
check "another cell may not have the state" fails 'is in use by process [0-9]+, which runs the cell first.test, not other.test' up other
check "the first goes on serving" says '"state": "serving"' "$afscell" status --config first.yaml --json
check "down stops it" says 'cell first.test is down' down first
check "... and its realm" no_process
check "down again is no error" says 'was not running' down first
check "another cell's state is refused when nobody runs" \
	fails 'holds the cell first.test, and the configuration is for other.test' up other

# --- versions
cp first/version version.good; echo 'afscell state 99' >first/version
check "a state of another version is refused" fails 'was made by another version of afscell \(format 99' up first
cp version.good first/version
check "... and untouched" up first
down first >/dev/null
mkdir full && echo thesis >full/thesis.tex; conf full
check "a directory with other things in it is refused" fails 'holds files, but is no state directory of afscell' up full
check "... and untouched" grep -q thesis full/thesis.tex

# --- the clock
touch -d '+2 days' first/alive
check "a clock that is behind the cell's last life is told" fails 'the clock is off: it says .*, but this cell ran at ' up first
rm first/alive
check "... and what to do helps" up first
down first >/dev/null

# --- keys
conf foreign "realm: {mode: external, name: FIRST.TEST, keytab: $work/first/keys/afs.keytab, krb5_conf: $work/x}"
check "a keytab without the cell's key is told" fails 'foreign.test' up foreign
check "... and makes nothing" absent foreign
echo garbage >garbage.keytab
conf garbage "realm: {mode: external, keytab: $work/garbage.keytab}"
check "a keytab that is none is told" fails 'garbage.keytab' up garbage
check "... and makes nothing" absent garbage

conf nocert 'console: {certificate: /nowhere.pem, key: /nowhere.key}'
check "a certificate of the console that is missing is told" fails '/nowhere.pem cannot be read: No such file.*; correct console.certificate' up nocert
check "... and makes nothing" absent nocert
conf badcert 'console: {certificate: /etc/passwd, key: /etc/passwd}'
LINES_MAX=2 check "one that is none is told" fails 'no certificate and key, in PEM, that fit each other; correct console.certificate' up badcert
check "... and nothing of it stays" absent badcert

# --- disks
mkdir rom && mount -t tmpfs -o ro tmpfs rom; conf readonly; sed -i "s|state: .*|state: $work/rom/state|" readonly.yaml
check "a file system that cannot be written is told" fails 'rom/state: cannot be made: Read-only file system; make that' up readonly
umount rom
mkdir tiny && mount -t tmpfs -o size=8m,mode=755 tmpfs tiny; conf disk; sed -i "s|state: .*|state: $work/tiny/state|" disk.yaml
check "a full disk is told" fails 'the disk is full: .* has [0-9] MiB left, and a cell needs at least 32' up disk
check "... and makes nothing" absent tiny/state
umount tiny

# --- passwords
conf nopw 'users: {bob: {password_file: nowhere}}'
check "a password file that is missing is told" fails 'password file .*/nowhere cannot be read' up nopw
check "... and makes nothing" absent nopw
conf noenv 'users: {bob: {password_env: NO_SUCH_VARIABLE}}'
check "a variable that is not set is told" fails 'NO_SUCH_VARIABLE, which is not set' up noenv

# --- the mount
mkdir dev && mount --bind /dev dev && mount -t tmpfs -o mode=755 tmpfs /dev && cp -a dev/null dev/zero dev/urandom dev/random /dev/ 2>/dev/null
for d in null zero urandom random; do [ -e /dev/$d ] || { : >/dev/$d && mount --bind dev/$d /dev/$d; }; done
MOUNT=$work/m conf fuse
check "a missing /dev/fuse is told" fails 'there is no /dev/fuse.*modprobe fuse.*client.mount: none' up fuse
check "... and makes nothing" absent fuse m
umount -l /dev # the real one again, for the mount point itself
mkdir taken && echo thesis >taken/thesis.tex; MOUNT=$work/taken conf nonempty
check "a mount point with files in it is told" fails 'start: .*/taken is to be the mount point, but holds files.*\(client.mount\)' up nonempty
check "... and untouched" grep -q thesis taken/thesis.tex
check "nothing runs in the end" no_process
