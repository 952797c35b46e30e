-- Open workshop pages, as wrk plays them: each connection asks GET /live as a page does while a load runs, and then
-- waits. A page says which traces it has; these always want them, so they cost the service rather more.
--
-- PAGES_PRODUCT is the product that they show.

local pause_ms = 700

function init()
   wrk.method = "GET"
   wrk.path = "/live?traces=60&product_id=" .. (os.getenv("PAGES_PRODUCT") or "1")
end

function delay()
   return pause_ms
end
