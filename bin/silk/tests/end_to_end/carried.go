// A server that makes its own system calls and its own threads: built without cgo there is no C library in it.
//
// carried serve ADDRESS FOLDER   files under /, and under other names what it knows of itself
// carried fetch URL              prints what it fetches
// carried say WORD               prints the word
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func main() {
	switch os.Args[1] {
	case "serve":
		serve(os.Args[2], os.Args[3])
	case "fetch":
		fetch(os.Args[2])
	case "say":
		fmt.Print(os.Args[2])
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func fetch(url string) {
	answer, err := http.Get(url)
	must(err)
	_, err = io.Copy(os.Stdout, answer.Body)
	must(err)
}

func serve(address, folder string) {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM)
	go func() {
		<-ends
		os.Exit(7)
	}()
	http.Handle("/", http.FileServer(http.Dir(folder)))
	answers := map[string]func() string{"/file": file, "/child": child, "/threads": threads, "/signals": signals}
	for path, answer := range answers {
		answer := answer
		http.HandleFunc(path, func(to http.ResponseWriter, _ *http.Request) { fmt.Fprint(to, answer()) })
	}
	must(http.ListenAndServe(address, nil))
}

// The program's own file.
func file() string {
	name, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	return name
}

// What a child says that is this program again.
func child() string {
	said, err := exec.Command("/proc/self/exe", "say", "child").CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return string(said)
}

// How many threads are left of a hundred that ended: a goroutine that ends while it is locked to its thread takes it along.
func threads() string {
	before := count()
	var all sync.WaitGroup
	for n := 0; n < 100; n++ {
		all.Add(1)
		go func() {
			runtime.LockOSThread()
			time.Sleep(time.Millisecond)
			all.Done()
		}()
	}
	all.Wait()
	for n := 0; n < 100 && count() > before+10; n++ {
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Sprint(count() <= before+10)
}

func count() int {
	tasks, err := os.ReadDir("/proc/self/task")
	must(err)
	return len(tasks)
}

// How many of a thousand signals to itself were heard of, while it is busy with calls and with none.
func signals() string {
	const all = 1000
	heard := make(chan os.Signal, all)
	signal.Notify(heard, syscall.SIGUSR1)
	defer signal.Stop(heard)
	for n := 0; n < all; n++ {
		must(syscall.Kill(os.Getpid(), syscall.SIGUSR1))
		select {
		case <-heard:
		case <-time.After(5 * time.Second):
			return fmt.Sprint("lost ", n)
		}
	}
	return "all"
}
