/* Embeds the style and the script of a report: the look of the service's own page, then what reports add, then the colours of drawings. */
	.section .rodata
	.global report_look, report_style, report_colours, report_script
report_look:
	.incbin "service/page/shared/style.css"
	.byte 0
report_style:
	.incbin "loadtest/report/report.css"
	.byte 0
report_colours:
	.incbin "loadtest/chart/chart.css"
	.byte 0
report_script:
	.incbin "loadtest/report/report.js"
	.byte 0
	.section .note.GNU-stack, "", @progbits
