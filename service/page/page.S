/* Embeds each file that the makefile lists in PAGE_FILES; page.c names them. */
#include "page_files.h"

#define EMBED(label, name, source, gz) .global page_##label, page_##label##_end, page_##label##_gz, page_##label##_gz_end; page_##label: .incbin source; page_##label##_end: page_##label##_gz: .incbin gz; page_##label##_gz_end:;
	.section .rodata
	PAGE_FILES(EMBED)
	.section .note.GNU-stack, "", @progbits
