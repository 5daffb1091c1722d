package latchkey_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey"
)

// A migration runs once in the fleet, however many processes start. The others wait for it.
func ExampleOnce_Do() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	migration := client.NewOnce("migration:42", latchkey.Forever)
	migrate := func(ctx context.Context) ([]byte, error) {
		fmt.Println("migrating, token > 0:", migration.HoldFrom(ctx).Token() > 0) // ctx ends if the hold is lost
		return []byte("3 tables"), nil
	}
	for range 2 { // every process does this when it starts
		result, err := migration.Do(ctx, migrate)
		fmt.Println(string(result), err)
	}
	// Output:
	// migrating, token > 0: true
	// 3 tables <nil>
	// 3 tables <nil>
}

// After a failure, the next Do runs again. Forget makes it run again after a success.
func ExampleOnce_Forget() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	import42 := client.NewOnce("import:42", latchkey.Forever)
	for _, failure := range []error{errors.New("no space left"), nil} {
		_, err := import42.Do(ctx, func(context.Context) ([]byte, error) { return []byte("12 rows"), failure })
		result, done, _ := import42.Result(ctx)
		fmt.Printf("%v: done %t, %q\n", err, done, result)
	}
	fmt.Println(import42.Forget(ctx))
	_, again, _ := import42.Result(ctx)
	fmt.Println("done", again)
	// Output:
	// no space left: done false, ""
	// <nil>: done true, "12 rows"
	// <nil>
	// done false
}
