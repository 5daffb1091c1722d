// Testredis runs embedded servers for tests whose module does not require miniredis: those of the
// root. They start it with internal/testredis. It reads an order from each line of the standard
// input, and answers with a line:
//
//	start                 starts a server; the answer is its address
//	time ADDRESS MICROS   stops the clock of a server at a time, in µs since 1970
//	stop ADDRESS          stops a server
//
// At the end of the input it exits.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	servers := map[string]*miniredis.Miniredis{}
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		answer, err := obey(servers, strings.Fields(orders.Text()))
		if err != nil {
			answer = "error: " + err.Error()
		}
		fmt.Println(answer)
	}
}

// obey carries out an order, and returns the address of the server.
func obey(servers map[string]*miniredis.Miniredis, order []string) (string, error) {
	if len(order) == 1 && order[0] == "start" {
		server := miniredis.NewMiniRedis()
		server.ClockTTL(true)
		if err := server.Start(); err != nil {
			return "", err
		}
		servers[server.Addr()] = server
		return server.Addr(), nil
	}
	if len(order) < 2 || servers[order[1]] == nil {
		return "", fmt.Errorf("no such order or server: %q", order)
	}
	address, server := order[1], servers[order[1]]
	switch {
	case order[0] == "stop":
		server.Close()
		delete(servers, address)
	case order[0] == "time" && len(order) == 3:
		micros, err := strconv.ParseInt(order[2], 10, 64)
		if err != nil {
			return "", err
		}
		server.SetTime(time.UnixMicro(micros))
		server.DB(0) // removes keys that have expired
	default:
		return "", fmt.Errorf("no such order: %q", order)
	}
	return address, nil
}
