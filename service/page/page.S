/* Embeds each file that the makefile lists in PAGE_FILES; page.c names them. */
#include "page_files.h"

#define EMBED(label, name, source) .global label, label##_end; label: .incbin source; label##_end:;
	.section .rodata
	PAGE_FILES(EMBED)
	.section .note.GNU-stack, "", @progbits
