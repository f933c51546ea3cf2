/* SPDX-License-Identifier: BSD-2-Clause
 * The assembler takes the files in as they are. */
#include "webui/assets.h"

#define ASSET(name, path, file, type)                                                              \
	__asm__(".section .rodata\n.global web_asset_" #name "\n.global web_asset_end_" #name      \
		"\nweb_asset_" #name ":\n.incbin \"" WEBUI_ASSETS "/" file "\"\nweb_asset_end_" #name      \
		":\n.byte 0\n.previous\n");                                                        \
	extern const unsigned char web_asset_##name[], web_asset_end_##name[];
#include "webui/assets.def"
#undef ASSET

const struct web_asset web_assets[] = {
#define ASSET(name, path, file, type) {path, type, web_asset_##name, web_asset_end_##name},
#include "webui/assets.def"
#undef ASSET
};
const size_t web_asset_count = sizeof(web_assets) / sizeof(web_assets[0]);
