/* SPDX-License-Identifier: BSD-2-Clause
 * The command line, nothing else. */
int main(void) { return 0; }
