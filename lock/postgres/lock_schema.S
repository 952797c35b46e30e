/* The SQL file of the lock tables, carried in the binary. */
	.section .rodata
	.global lock_schema_sql
lock_schema_sql:
	.incbin "lock/postgres/lock_schema.sql"
	.byte 0
	.section .note.GNU-stack, "", @progbits
