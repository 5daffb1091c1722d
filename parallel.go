package latchkey

import "sync"

// inParallel calls f for each of several things, at most limit at the same time, and returns
// when every call has.
func inParallel[T any](limit int, all []T, f func(T)) {
	places := make(chan struct{}, limit)
	var calls sync.WaitGroup
	for _, each := range all {
		places <- struct{}{}
		calls.Go(func() {
			defer func() { <-places }()
			f(each)
		})
	}
	calls.Wait()
}

// atOnce calls f for all of several things at the same time, and returns the errors by their
// places.
func atOnce[T any](all []T, f func(T) error) []error {
	errs := make([]error, len(all))
	inParallel(len(all), indexes(all), func(i int) { errs[i] = f(all[i]) })
	return errs
}

// indexes are the places of all.
func indexes[T any](all []T) []int {
	places := make([]int, len(all))
	for i := range places {
		places[i] = i
	}
	return places
}
