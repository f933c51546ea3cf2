# SPDX-License-Identifier: BSD-2-Clause
TESTS += tests/lint/layers.sh tests/lint/format.sh tests/lint/purity.sh
