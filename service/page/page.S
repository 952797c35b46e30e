/* The page's files, carried in the binary; page.c says what each is. */
	.section .rodata
	.global page_index, page_index_end
page_index:
	.incbin "service/page/index.html"
page_index_end:
	.global page_steps_page, page_steps_page_end
page_steps_page:
	.incbin "service/page/steps.html"
page_steps_page_end:
	.global page_steps_style, page_steps_style_end
page_steps_style:
	.incbin "service/page/steps.css"
page_steps_style_end:
	.global page_steps, page_steps_end
page_steps:
	.incbin "service/page/steps.js"
page_steps_end:
	.global page_steps_view, page_steps_view_end
page_steps_view:
	.incbin "service/page/steps_view.js"
page_steps_view_end:
	.global page_steps_words, page_steps_words_end
page_steps_words:
	.incbin "service/page/steps_words.js"
page_steps_words_end:
	.global page_style, page_style_end
page_style:
	.incbin "service/page/style.css"
page_style_end:
	.global page_timeline_style, page_timeline_style_end
page_timeline_style:
	.incbin "service/page/timeline.css"
page_timeline_style_end:
	.global page_icon, page_icon_end
page_icon:
	.incbin "service/page/icon.svg"
page_icon_end:
	.global page_class, page_class_end
page_class:
	.incbin "service/page/class.js"
page_class_end:
	.global page_class_panel, page_class_panel_end
page_class_panel:
	.incbin "service/page/class_panel.js"
page_class_panel_end:
	.global page_app, page_app_end
page_app:
	.incbin "service/page/app.js"
page_app_end:
	.global page_api, page_api_end
page_api:
	.incbin "service/page/api.js"
page_api_end:
	.global page_dom, page_dom_end
page_dom:
	.incbin "service/page/dom.js"
page_dom_end:
	.global page_figures, page_figures_end
page_figures:
	.incbin "service/page/figures.js"
page_figures_end:
	.global page_strategies, page_strategies_end
page_strategies:
	.incbin "service/page/strategies.js"
page_strategies_end:
	.global page_orders, page_orders_end
page_orders:
	.incbin "service/page/orders.js"
page_orders_end:
	.global page_load, page_load_end
page_load:
	.incbin "service/page/load.js"
page_load_end:
	.global page_results, page_results_end
page_results:
	.incbin "service/page/results.js"
page_results_end:
	.global page_timeline, page_timeline_end
page_timeline:
	.incbin "service/page/timeline.js"
page_timeline_end:
	.global page_overlaps, page_overlaps_end
page_overlaps:
	.incbin "service/page/overlaps.js"
page_overlaps_end:
	.global page_looks, page_looks_end
page_looks:
	.incbin "service/page/looks.js"
page_looks_end:
	.section .note.GNU-stack, "", @progbits
