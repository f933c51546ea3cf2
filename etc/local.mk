# SPDX-License-Identifier: BSD-2-Clause
# What is installed beside the binary: the systemd unit, bash completion and manual pages (the latter two
# are what the binary itself says).
systemdunitdir = $(prefix)/lib/systemd/system
systemdunit_DATA = %reldir%/afscell.service
completiondir = $(datadir)/bash-completion/completions
completion_DATA = %reldir%/completion/afscell
CLEANFILES += %reldir%/afscell.service %reldir%/completion/afscell %reldir%/man/stamp %reldir%/man/*.1 %reldir%/man/*.5

%reldir%/afscell.service: %reldir%/afscell.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed -e 's|@bindir[@]|$(bindir)|g' -e 's|@sysconfdir[@]|$(sysconfdir)|g' \
		$(srcdir)/%reldir%/afscell.service.in >$@
%reldir%/completion/afscell: afscell$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && ./afscell$(EXEEXT) help --completion >$@.new && mv $@.new $@
%reldir%/man/stamp: afscell$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && ./afscell$(EXEEXT) help --man $(@D) && : >$@
all-local: %reldir%/man/stamp
# The tools by the names that AFS people know, in a directory of their own: never over those of another package.
# PATH=$(libexecdir)/afscell:$PATH takes them.
TOOL_NAMES = aklog bos fs klog klog.krb5 pts rxdebug tokens udebug unlog vos
install-exec-hook:
	$(MKDIR_P) '$(DESTDIR)$(libexecdir)/afscell'
	for n in $(TOOL_NAMES); do ln -sf '$(bindir)/afscell' '$(DESTDIR)$(libexecdir)/afscell'/$$n || exit 1; done
install-data-hook: %reldir%/man/stamp
	$(MKDIR_P) '$(DESTDIR)$(mandir)/man1' '$(DESTDIR)$(mandir)/man5'
	$(INSTALL_DATA) %reldir%/man/*.1 '$(DESTDIR)$(mandir)/man1'
	$(INSTALL_DATA) %reldir%/man/*.5 '$(DESTDIR)$(mandir)/man5'
uninstall-hook:
	for n in $(TOOL_NAMES); do rm -f '$(DESTDIR)$(libexecdir)/afscell'/$$n; done
	for f in %reldir%/man/*.1; do rm -f '$(DESTDIR)$(mandir)/man1'/$${f##*/}; done
	for f in %reldir%/man/*.5; do rm -f '$(DESTDIR)$(mandir)/man5'/$${f##*/}; done
