/* The SQL files of the schema, carried in the binary. */
	.section .rodata
	.global db_schema_sql
db_schema_sql:
	.incbin "db/schema/001.sql"
	.byte 0
	.global db_schema_2_sql
db_schema_2_sql:
	.incbin "db/schema/002.sql"
	.byte 0
	.global db_schema_3_sql
db_schema_3_sql:
	.incbin "db/schema/003.sql"
	.byte 0
	.global db_schema_4_sql
db_schema_4_sql:
	.incbin "db/schema/004.sql"
	.byte 0
	.section .note.GNU-stack, "", @progbits
