// Runs a file of statements as Grafana does, over lib/pq; prints what comes of each.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/lib/pq"
)

func main() {
	text, err := os.ReadFile(os.Args[2])
	check(err)
	db, err := sql.Open("postgres", os.Args[1])
	check(err)
	defer db.Close()
	for _, statement := range regexp.MustCompile(`\n;;.*\n`).Split(string(text), -1) {
		if statement != "" {
			fmt.Println(outcome(db.Query(statement)))
		}
	}
	day := time.Date(2024, 1, 15, 0, 0, 0, 0, time.UTC)
	prepared, err := db.Prepare("SELECT state, COUNT(*) FROM orders WHERE created_at >= $1 AND qty < $2 AND state = ANY($3) GROUP BY state")
	check(err)
	for i := 0; i < 7; i++ {
		fmt.Println("prepared " + outcome(prepared.Query(day, 5, pq.Array([]string{"new", "paid"}))))
	}
	late, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer stop()
	fmt.Println("cancelled " + outcome(db.QueryContext(late, "SELECT COUNT(*) FROM pg_attribute a, pg_attribute b, pg_attribute c")))
	fmt.Println("after " + outcome(db.Query("SELECT 1")))
}

func outcome(rows *sql.Rows, err error) string {
	count := 0
	if err == nil {
		defer rows.Close()
		for rows.Next() {
			count++
		}
		err = rows.Err()
	}
	if found, ok := err.(*pq.Error); ok {
		return "error " + string(found.Code) + " " + strings.ReplaceAll(found.Message+" | "+found.Hint, "\n", " | ")
	}
	if err != nil {
		return "error " + err.Error()
	}
	return fmt.Sprintf("rows %d", count)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
