/* The API's description, carried in the binary. */
	.section .rodata
	.global openapi_yaml
openapi_yaml:
	.incbin "docs/openapi.yaml"
	.byte 0
	.section .note.GNU-stack, "", @progbits
