// Streams a continuation of a prompt, and answers many prompts in one batch.
//
//	CGO_CFLAGS="$(pkg-config --cflags paceline)" CGO_LDFLAGS="$(pkg-config --libs paceline)" go build
//	./paceline-example MODEL "It was a dark and stormy night"
package main

// #include <paceline/paceline.h>
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

// check must run on the thread of the call, which main locks: messages are kept a thread.
func check(status C.paceline_status, what string) {
	if status == C.PACELINE_OK {
		return
	}
	name := C.GoString(C.paceline_status_name(status))
	fmt.Fprintf(os.Stderr, "%s: %s: %s\n", what, name, C.GoString(C.paceline_last_error()))
	os.Exit(1)
}

func load(path string) *C.paceline_model {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	options := (*C.paceline_load_options)(C.malloc(C.sizeof_paceline_load_options))
	defer C.free(unsafe.Pointer(options))
	C.paceline_load_options_init(options)
	options.model = text
	var model *C.paceline_model
	check(C.paceline_load(options, &model), "load")
	return model
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintf(os.Stderr, "usage: %s MODEL PROMPT\n", os.Args[0])
		os.Exit(2)
	}
	runtime.LockOSThread()
	model := load(os.Args[1])
	defer C.paceline_free_model(model)

	text := C.CString(os.Args[2])
	defer C.free(unsafe.Pointer(text))
	var options C.paceline_generate_options
	C.paceline_generate_options_init(&options)
	options.max_tokens = 24
	options.temperature = 0

	var generation *C.paceline_generation
	check(C.paceline_generate(model, C.paceline_text_prompt(text), &options, &generation), "generate")
	defer C.paceline_free_generation(generation)
	for {
		var piece *C.char
		var size C.size_t
		check(C.paceline_next_piece(generation, &piece, &size), "piece")
		if piece == nil {
			break
		}
		fmt.Print(C.GoStringN(piece, C.int(size)))
	}
	var completion *C.paceline_completion
	check(C.paceline_finish_generation(generation, &completion), "finish")
	fmt.Printf("\n%d tokens\n", int64(completion.usage.completion_tokens))
}
