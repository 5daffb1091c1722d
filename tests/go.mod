module github.com/latchkey-go/latchkey/tests

go 1.25.0

require github.com/latchkey-go/latchkey v0.0.0

replace github.com/latchkey-go/latchkey => ../
