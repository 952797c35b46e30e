-- Open pages, as wrk plays them. Each connection is a page: it asks what the page asks, and then waits as long as the page.
--
-- PAGES_PRODUCT is the product that workshop pages show. They ask GET /live as a page does while a load runs. A page says which
-- traces it has; these always want them, so they cost the service rather more.
--
-- PAGES_LEARNERS, tokens with commas between, makes them the pages of a class instead: each learner's page asks for news every 2.5 s,
-- and one connection is the class board, which asks every 2 s with ADMIN_TOKEN.

local live_ms, news_ms, board_ms = 700, 2500, 2000

local tokens = {}
for token in string.gmatch(os.getenv("PAGES_LEARNERS") or "", "[^,]+") do
   table.insert(tokens, token)
end

if #tokens == 0 then
   function init()
      wrk.method = "GET"
      wrk.path = "/live?traces=60&product_id=" .. (os.getenv("PAGES_PRODUCT") or "1")
   end

   function delay()
      return live_ms
   end
else
   local begun, sent, version = 0, 0, 0
   local board_every = math.floor(#tokens * board_ms / news_ms + 0.5) + 1 -- of this many requests, one is the board's

   local function get(path, token)
      return wrk.format("GET", path, { ["Authorization"] = "Bearer " .. token })
   end

   function request()
      sent = sent + 1
      if sent % board_every == 0 then
         return get("/class/board", os.getenv("ADMIN_TOKEN"))
      end
      return get("/class/news?version=" .. version, tokens[sent % #tokens + 1])
   end

   -- A page says which news it has. The board's answer has another version.
   function response(_, _, body)
      if string.find(body, '"vote"', 1, true) then
         version = string.match(body, '"version": *(%d+)') or version
      end
   end

   -- Pages are opened at different moments.
   function delay()
      begun = begun + 1
      return begun <= #tokens + 1 and math.random(0, news_ms) or news_ms
   end
end
