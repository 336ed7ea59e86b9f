# What lua does: the same on Linux and on the kernel.
lua5.4 - <<'END'
print(_VERSION, 10 // 3, 10 / 4, 2 ^ 10, 7 % -3, 1 << 40, "a" .. 1, #"hello", math.maxinteger, 0.1 + 0.2)
local t = {}; for i = 1, 10 do t[i] = i * i % 7 end; table.sort(t); print(table.concat(t, " "))
print(("hello world"):gsub("o", "0"), string.format("%5.2f|%-4d|%q", 3.14159, 42, "a\nb"), ("k=v"):match("(%w)=(%w)"))
local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end); print(co(), co(), co())
local m = setmetatable({}, { __index = function(_, k) return k .. "!" end, __call = function(_, x) return x * 2 end }); print(m.x, m(21))
print(pcall(error, "oops")); print(select("#", 1, nil, 3), utf8.char(228, 8364), os.time({ year = 2000, month = 1, day = 1, hour = 12 }))
local f = io.open("f", "w"); f:write("one\ntwo\n"); f:close(); for l in io.lines("f") do io.write("[", l, "]") end print()
local p = io.popen("echo piped"); print(p:read("a")); print(p:close()); print(os.execute("exit 3")); print(os.rename("f", "g"), os.remove("g"), os.getenv("HOME"), os.tmpname() ~= nil)
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end print(fib(22)); goto done; print("no") ::done:: print(load("return 1 + 1")(), type(os.clock()), next({}))
END
