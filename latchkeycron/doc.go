// Package latchkeycron runs the jobs of gocron (github.com/go-co-op/gocron/v2) once in a fleet: a [Locker] for
// gocron.WithDistributedLocker, and an [Elector] for gocron.WithDistributedElector.
//
//	locker := latchkeycron.NewLocker(client)
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// With a Locker the schedulers compete for each run of each job. It takes care of schedulers whose clocks differ: a
// tick that was run is not run again by a scheduler that is late. With an Elector one scheduler runs all jobs, until it
// resigns or its lease is over.
//
// gocron asks the elector alone if a scheduler has both.
package latchkeycron
