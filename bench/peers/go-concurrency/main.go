// Go's clientv3/concurrency, measured by `cargo xtask bench etcd`. What it is told and says: ../README.md.
//
// The surprise: two tasks of one session that want one name are both in, since the session is who holds. So where tasks
// want the same name, each has a session of its own.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"golang.org/x/sys/unix"
)

const (
	client    = "go.etcd.io/etcd/client/v3"
	pairTasks = 64
	turnTasks = 8
	leaseS    = 30
	heldFor   = 4 * time.Millisecond
	rest      = time.Millisecond
	dialTakes = 5 * time.Second
)

var background = context.Background()

// mode is what the tasks of a process do in a slice; `tasks` of them, each with a session of its own or all with one.
type mode struct {
	tasks      int
	ownSession bool
	ownName    bool
	play       func(lock *concurrency.Mutex, end time.Time) ([]string, error)
	// answer is what the notes of all tasks come to.
	answer func(notes []string) string
}

var modes = map[string]mode{
	"pairs": {pairTasks, false, true, pairs, func(notes []string) string { return strconv.Itoa(len(notes)) }},
	"turns": {turnTasks, true, false, turns, func(notes []string) string { return strings.Join(notes, " ") }},
	"ball":  {1, true, false, ball, func(notes []string) string { return strings.Join(notes, " ") }},
}

func pairs(lock *concurrency.Mutex, end time.Time) (notes []string, err error) {
	for time.Now().Before(end) {
		if err = lock.Lock(background); err != nil {
			return
		}
		if err = lock.Unlock(background); err != nil {
			return
		}
		notes = append(notes, "")
	}
	return
}

func turns(lock *concurrency.Mutex, end time.Time) (notes []string, err error) {
	for time.Now().Before(end) {
		if err = lock.Lock(background); err != nil {
			return
		}
		notes = append(notes, strconv.FormatInt(nanos(unix.CLOCK_BOOTTIME), 10))
		if err = lock.Unlock(background); err != nil {
			return
		}
	}
	return
}

// ball needs no word from the other one that it has the lock: that one stands in line, and comes first.
func ball(lock *concurrency.Mutex, end time.Time) (notes []string, err error) {
	for time.Now().Before(end) {
		if err = lock.Lock(background); err != nil {
			return
		}
		notes = append(notes, fmt.Sprintf("T%d", nanos(unix.CLOCK_BOOTTIME)))
		time.Sleep(heldFor)
		notes = append(notes, fmt.Sprintf("P%d", nanos(unix.CLOCK_BOOTTIME)))
		if err = lock.Unlock(background); err != nil {
			return
		}
		time.Sleep(rest)
	}
	return
}

// locks are what the tasks of a mode want, each its own; they live as long as the process.
func locks(etcd *clientv3.Client, of mode) ([]*concurrency.Mutex, error) {
	var made []*concurrency.Mutex
	var session *concurrency.Session
	for task := 0; task < of.tasks; task++ {
		if session == nil || of.ownSession {
			var err error
			if session, err = concurrency.NewSession(etcd, concurrency.WithTTL(leaseS)); err != nil {
				return nil, err
			}
		}
		number := 0
		if of.ownName {
			number = task
		}
		made = append(made, concurrency.NewMutex(session, fmt.Sprintf("orders/item-%08d", number)))
	}
	return made, nil
}

// slice lets all tasks play until the time is over, and gives their notes.
func slice(locks []*concurrency.Mutex, of mode, length time.Duration) ([]string, error) {
	end := time.Now().Add(length)
	notes, errs := make([][]string, len(locks)), make([]error, len(locks))
	var tasks sync.WaitGroup
	for task, lock := range locks {
		tasks.Add(1)
		go func(task int, lock *concurrency.Mutex) {
			defer tasks.Done()
			notes[task], errs[task] = of.play(lock, end)
		}(task, lock)
	}
	tasks.Wait()
	var all []string
	for task := range locks {
		if errs[task] != nil {
			return nil, errs[task]
		}
		all = append(all, notes[task]...)
	}
	return all, nil
}

func run(name, url string) error {
	of, known := modes[name]
	if !known {
		return fmt.Errorf("there is no mode `%s`", name)
	}
	endpoint := strings.TrimPrefix(url, "etcd://")
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: dialTakes})
	if err != nil {
		return err
	}
	defer etcd.Close()
	wanted, err := locks(etcd, of)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		ms, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		cpu := nanos(unix.CLOCK_PROCESS_CPUTIME_ID)
		notes, err := slice(wanted, of, time.Duration(ms)*time.Millisecond)
		if err != nil {
			return err
		}
		fmt.Println(nanos(unix.CLOCK_PROCESS_CPUTIME_ID)-cpu, of.answer(notes))
	}
	return lines.Err()
}

func nanos(clock int32) int64 {
	var at unix.Timespec
	// It fails for clocks that do not exist only.
	if err := unix.ClockGettime(clock, &at); err != nil {
		panic(err)
	}
	return at.Nano()
}

// version is that of the client, from what the program was built of.
func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == client {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "of an unknown version"
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Printf("etcd clientv3 concurrency %s, %s\n", version(), runtime.Version())
		return
	}
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go-concurrency MODE URL")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
