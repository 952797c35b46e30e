-- What wrk sends and counts: orders, told apart by how they were answered.
--
-- wrk drops the answers that are in flight when its time is up, and with them the knowledge whether those
-- orders were made. So a connection that has nothing more to send is parked with delay(); once all of a
-- thread's connections are parked, every order it sent has been answered, and it says so on stdout. The load
-- test then ends wrk with SIGINT, and done() prints the counts.
--
-- The environment says what to do (wrk reads this file before it hands over arguments):
--   LOAD_TARGETS      "host port,host port,…": the services; threads take them in turn
--   LOAD_THREADS      how many threads there are
--   LOAD_CONNECTIONS  connections of each thread
--   LOAD_PATH         what is posted to (default /orders)
--   LOAD_PRODUCT      the first product's id (default 1)
--   LOAD_PRODUCTS     how many products are ordered in turn (default 1)
--   LOAD_QUANTITY     units an order (default 1)
--   LOAD_REQUESTS     orders to send in all; 0: no such limit
--   LOAD_WINDOW_MS    how long to send; 0: no such limit
--   LOAD_SETTLED      stop after this many "sold out" in a row in each thread; 0: never
--   LOAD_STUCK_MS     the thread repeats an order after a retryable refusal, as long as its last other answer is
--                     not older than this; then the thread stops. 0: it does not repeat orders
-- Without a limit nothing is parked and nothing reported: wrk runs until the end of its -d.

local ffi = require("ffi")
ffi.cdef [[
   typedef struct { long seconds; long nanoseconds; } oversell_timespec;
   int clock_gettime(int clock, oversell_timespec *ret_now);
]]

local CLOCK_MONOTONIC = 1
local PARKED_MS = 24 * 3600 * 1000
local REPORT_US = 100000
local PAUSE_MS = 2         -- before an order is repeated
local SENT_AGAIN_MAX = 16  -- the most repetitions, as a multiple of the number of orders

-- Each is a global of the thread, since wrk hands over globals only: thread:get("created").
local COUNTERS = {
   "sent", "answered", "created", "sold_out", "lock_busy", "conflict", "overloaded", "lock_lost",
   "unavailable", "unknown", "other", "window_created", "created_late",
}

local PROBLEM_COUNTERS = {
   ["sold-out"] = "sold_out",
   ["lock-busy"] = "lock_busy",
   ["conflict"] = "conflict",
   ["overloaded"] = "overloaded",
   ["lock-lost"] = "lock_lost",
   ["backend-unavailable"] = "unavailable",
   ["outcome-unknown"] = "unknown",
}

-- Nothing was sold, and the same order may succeed later.
local COMES_AGAIN = { lock_busy = true, conflict = true, overloaded = true, lock_lost = true }

local function setting(name, default)
   return tonumber(os.getenv(name)) or default
end

local function targets()
   local list = {}
   for host, port in (os.getenv("LOAD_TARGETS") or ""):gmatch("([^ ,]+) (%d+)") do
      list[#list + 1] = { host = host, port = port }
   end
   return list
end

local now_buffer = ffi.new("oversell_timespec")

local function now_us()
   ffi.C.clock_gettime(CLOCK_MONOTONIC, now_buffer)
   return tonumber(now_buffer.seconds) * 1e6 + math.floor(tonumber(now_buffer.nanoseconds) / 1e3)
end

-- ---- in wrk's main state --------------------------------------------------------------------------

local threads = {}

function setup(thread)
   local list = targets()
   local target = list[#threads % #list + 1]
   local addresses = wrk.lookup(target.host, target.port)
   thread.addr = addresses[1]
   for _, address in ipairs(addresses) do -- a name may stand for several, and one of them may answer
      if wrk.connect(address) then
         thread.addr = address
         break
      end
   end
   thread:set("index", #threads)
   threads[#threads + 1] = thread
end

local SERIES_SLOTS = 48

-- What was sold over time: units in each slot, and the stock that the last order of the slot left. The slots are as wide as those of
-- the thread that ran longest.
local function sale_series(first)
   local width = 0
   for _, thread in ipairs(threads) do
      width = math.max(width, thread:get("slot_us"))
   end
   local sold, left, left_us, count = {}, {}, {}, 0
   for _, thread in ipairs(threads) do
      local start, own = thread:get("first_us") - first, thread:get("slot_us")
      for slot, units, stock in thread:get("sale_text"):gmatch("(%d+):(%d+):(%-?%d*)") do
         local at_us = start + (tonumber(slot) + 0.5) * own
         local i = math.floor(at_us / width) + 1
         sold[i] = (sold[i] or 0) + tonumber(units)
         count = math.max(count, i)
         if stock ~= "" and at_us >= (left_us[i] or -1) then
            left[i], left_us[i] = tonumber(stock), at_us
         end
      end
   end
   local units, stocks = {}, {}
   for i = 1, count do
      units[i] = string.format("%d", sold[i] or 0)
      stocks[i] = left[i] and string.format("%d", left[i]) or "null"
   end
   return string.format('"slot_us":%d,"sold_in_slot":[%s],"left_after_slot":[%s]', width, table.concat(units, ","),
                        table.concat(stocks, ","))
end

function done(summary, latency, requests)
   local total = {}
   for _, name in ipairs(COUNTERS) do
      total[name] = 0
   end
   local first, last = math.huge, 0
   for _, thread in ipairs(threads) do
      for _, name in ipairs(COUNTERS) do
         total[name] = total[name] + thread:get(name)
      end
      if thread:get("first_us") > 0 then
         first = math.min(first, thread:get("first_us"))
      end
      last = math.max(last, thread:get("last_us"))
   end
   local fields = {}
   for _, name in ipairs(COUNTERS) do
      fields[#fields + 1] = string.format('"%s":%d', name, total[name])
   end
   fields[#fields + 1] = string.format('"elapsed_us":%d', math.max(0, last - math.min(first, last)))
   fields[#fields + 1] = string.format('"window_us":%d', setting("LOAD_WINDOW_MS", 0) * 1000)
   for name, count in pairs({
      socket_connect = summary.errors.connect,
      socket_read = summary.errors.read,
      socket_write = summary.errors.write,
      slow = summary.errors.timeout,
   }) do
      fields[#fields + 1] = string.format('"%s":%d', name, count)
   end
   if setting("LOAD_REQUESTS", 0) > 0 and first < math.huge then
      fields[#fields + 1] = sale_series(first)
   end
   local percentiles = {}
   for i, percentile in ipairs({ 25, 50, 75, 90, 95, 99, 99.9 }) do -- as load_percentiles in wrk.h
      percentiles[i] = string.format("%d", latency:percentile(percentile))
   end
   fields[#fields + 1] = '"latency_us":[' .. table.concat(percentiles, ",") .. "]"
   io.write("\noversell result {", table.concat(fields, ","), "}\n")
   io.flush()
end

-- ---- in each thread's state -----------------------------------------------------------------------

local limited = setting("LOAD_REQUESTS", 0) > 0 or setting("LOAD_WINDOW_MS", 0) > 0
local connections = setting("LOAD_CONNECTIONS", 0)
local bodies = {}
local quota, window_us, settled, stuck_us
local turn, budgeted, parked, sold_out_in_a_row, next_report = 0, 0, 0, 0, 0
local sent_again, pauses, served_us, stuck = 0, 0, 0, false
local early -- orders that were in progress when this thread first got "sold out", and have no answer yet

first_us, last_us = 0, 0
slot_us, sale_text = 1000, "" -- of sale_series above
local sale, quantity = {}, setting("LOAD_QUANTITY", 1)
for _, name in ipairs(COUNTERS) do
   _G[name] = 0
end

function init(args)
   local list = targets()
   local target = list[index % #list + 1]
   local host = target.host:find(":") and "[" .. target.host .. "]" or target.host
   wrk.headers["Host"] = host .. ":" .. target.port
   wrk.headers["Content-Type"] = "application/json"
   local token = os.getenv("ADMIN_TOKEN") -- a classroom's orders need one
   if token and token ~= "" then
      wrk.headers["Authorization"] = "Bearer " .. token
   end

   local all, count = setting("LOAD_REQUESTS", 0), setting("LOAD_THREADS", 1)
   quota = all > 0 and math.floor(all / count) + (index < all % count and 1 or 0) or math.huge
   window_us = setting("LOAD_WINDOW_MS", 0) > 0 and setting("LOAD_WINDOW_MS", 0) * 1000 or math.huge
   settled = setting("LOAD_SETTLED", 0) > 0 and setting("LOAD_SETTLED", 0) or math.huge
   stuck_us = setting("LOAD_STUCK_MS", 0) * 1000

   local first, products = setting("LOAD_PRODUCT", 1), setting("LOAD_PRODUCTS", 1)
   local quantity = setting("LOAD_QUANTITY", 1)
   for i = 1, products do
      local body = string.format('{"product_id":%d,"quantity":%d}', first + i - 1, quantity)
      bodies[i] = wrk.format("POST", os.getenv("LOAD_PATH") or "/orders", nil, body)
   end
   turn = math.floor(index * products / count) -- threads start apart
end

local function report(now)
   next_report = now + REPORT_US
   io.write(string.format("\noversell progress %d %d %d\n", index, answered, created))
   io.flush()
end

-- The slots as text, since a thread hands over texts and numbers only.
local function print_sale()
   local parts = {}
   for i = 0, SERIES_SLOTS - 1 do
      local slot = sale[i]
      if slot then
         parts[#parts + 1] = string.format("%d:%d:%s", i, slot.units, slot.left and string.format("%d", slot.left) or "")
      end
   end
   sale_text = table.concat(parts, " ")
end

-- Called before every order of a connection; not before the one that a broken connection sends again.
local function before_order()
   local now = now_us()
   if first_us == 0 then
      first_us = now
   end
   if budgeted < quota and now - first_us < window_us and sold_out_in_a_row < settled and not stuck then
      budgeted = budgeted + 1
      if pauses > 0 then
         pauses = pauses - 1
         return PAUSE_MS
      end
      return 0
   end
   parked = parked + 1
   if parked == connections then
      print_sale()
      report(now)
      io.write(string.format("\noversell parked %d\n", index))
      io.flush()
   end
   return PARKED_MS
end

if limited then
   delay = before_order
end

function request()
   -- wrk also calls this once to look at the request, before anything is sent.
   if first_us > 0 or not limited then
      sent = sent + 1
   end
   turn = turn % #bodies + 1
   return bodies[turn]
end

-- Returns a busy order to the quota, up to a limit, so that every load ends.
local function send_again()
   local now = now_us()
   stuck = now - math.max(first_us, served_us) > stuck_us
   if sent_again < SENT_AGAIN_MAX * quota then
      sent_again = sent_again + 1
      budgeted = budgeted - 1
      pauses = pauses + 1
   end
end

-- Counts the orders that were created although they were sent after this thread got "sold out": those beyond the
-- orders in progress at that time. Meaningful only if all orders have the same product and quantity.
local function count_late(name)
   if name == "sold_out" then
      early = early or sent - answered
   elseif name == "created" and early and early > 0 then
      early = early - 1
   elseif name == "created" and early then
      created_late = created_late + 1
   end
end

-- Doubles the width of the slots until TIME_US fits into one of them.
local function widen_slots(time_us)
   while time_us >= SERIES_SLOTS * slot_us do
      slot_us = slot_us * 2
      local wider = {}
      for i = 0, SERIES_SLOTS - 1 do
         local from, into = sale[i], math.floor(i / 2)
         if from then
            local before = wider[into] or { units = 0 }
            wider[into] = { units = before.units + from.units, left = from.left or before.left }
         end
      end
      sale = wider
   end
end

-- Counts a created order of a sell-out. The order has read the stock that its answer names, and taken its units from it.
local function count_sale(body, now)
   widen_slots(now - first_us)
   local i = math.floor((now - first_us) / slot_us)
   local seen = tonumber(body:match('"stock_seen"%s*:%s*(%-?%d+)'))
   local slot = sale[i] or { units = 0 }
   sale[i] = slot
   slot.units = slot.units + quantity
   slot.left = seen and seen - quantity or slot.left
end

function response(status, headers, body)
   local name
   if status == 201 or status == 202 then
      name = "created"
   else
      local problem = body:match('"type"%s*:%s*"[^"]*/problems/([%w-]+)"')
      name = problem and PROBLEM_COUNTERS[problem] or "other"
   end
   _G[name] = _G[name] + 1
   answered = answered + 1
   sold_out_in_a_row = name == "sold_out" and sold_out_in_a_row + 1 or 0
   count_late(name)
   if stuck_us > 0 and COMES_AGAIN[name] then
      send_again()
   elseif stuck_us > 0 then
      served_us = now_us()
   end
   if limited then
      last_us = now_us()
      if name == "created" and quota < math.huge then
         count_sale(body, last_us)
      end
      if name == "created" and last_us - first_us < window_us then
         window_created = window_created + 1
      end
      if last_us >= next_report then
         report(last_us)
      end
   end
end
