#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Makes ./configure from configure.ac and Makefile.am.
cd "$(dirname "$0")" && mkdir -p build-aux && exec autoreconf --install --force
