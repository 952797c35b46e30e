/* The SQL files of the schema, carried in the binary. */
	.section .rodata
	.global db_schema_sql
db_schema_sql:
	.incbin "db/schema.sql"
	.byte 0
	.global db_schema_2_sql
db_schema_2_sql:
	.incbin "db/schema_2.sql"
	.byte 0
	.global db_schema_3_sql
db_schema_3_sql:
	.incbin "db/schema_3.sql"
	.byte 0
	.global db_schema_4_sql
db_schema_4_sql:
	.incbin "db/schema_4.sql"
	.byte 0
	.section .note.GNU-stack, "", @progbits
