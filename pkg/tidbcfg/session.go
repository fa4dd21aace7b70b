package tidbcfg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// session is one connection to one TiDB server. Warnings belong to it.
type session struct {
	conn    *sql.Conn
	timeout time.Duration
}

// close gives the connection back to the pool; the pool drops it if the driver
// has seen it break.
func (s *session) close() { _ = s.conn.Close() }

// discard closes the connection for good: it may still be busy with a statement
// that we gave up, or may have been killed by a DBA.
func (s *session) discard() {
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	s.close()
}

func (s *session) ping(ctx context.Context, timeout time.Duration) (err error) {
	defer recoverTo(&err)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.conn.PingContext(ctx)
}

func (s *session) exec(ctx context.Context, statement string) (err error) {
	defer recoverTo(&err)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err = s.conn.ExecContext(ctx, statement)
	return s.explain(err)
}

// query returns all rows as text, NULL as "".
func (s *session) query(ctx context.Context, statement string) (rows [][]string, err error) {
	defer recoverTo(&err)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	result, err := s.conn.QueryContext(ctx, statement)
	if err != nil {
		return nil, s.explain(err)
	}
	defer func() { _ = result.Close() }()
	columns, err := result.Columns()
	if err != nil {
		return nil, err
	}
	for result.Next() {
		row, err := scanRow(result, len(columns))
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, s.explain(result.Err())
}

func scanRow(rows *sql.Rows, width int) ([]string, error) {
	cells := make([]sql.NullString, width)
	targets := make([]any, width)
	for i := range cells {
		targets[i] = &cells[i]
	}
	if err := rows.Scan(targets...); err != nil {
		return nil, err
	}
	row := make([]string, width)
	for i, c := range cells {
		row[i] = c.String
	}
	return row, nil
}

// warnings returns the messages of the last statement's warnings.
func (s *session) warnings(ctx context.Context) ([]string, error) {
	rows, err := s.query(ctx, "SHOW WARNINGS")
	if err != nil {
		return nil, fmt.Errorf("read warnings: %w", err)
	}
	var out []string
	for _, row := range rows { // Level, Code, Message
		if len(row) == 3 {
			out = append(out, row[2])
		}
	}
	return out, nil
}

func (s *session) explain(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v: %w", s.timeout, err)
	}
	return err
}

// MySQL error numbers that TiDB uses as well.
const (
	codeDBAccessDenied       = 1044
	codeServerShutdown       = 1053
	codeTableAccessDenied    = 1142
	codeSpecificAccessDenied = 1227
	codeQueryInterrupted     = 1317
	codeMaxExecTimeOld       = 1907
	codeConnectionKilled     = 1927
	codeMaxExecTime          = 3024
)

// answered reports whether err is TiDB's own final word on a statement. Anything
// else (no answer, connection gone, statement killed on its way) leaves open how
// far the statement got.
func answered(err error) bool {
	switch serverCode(err) {
	case 0, codeServerShutdown, codeQueryInterrupted, codeMaxExecTimeOld, codeConnectionKilled, codeMaxExecTime:
		return false
	}
	return true
}

// serverCode is the number of a server's error packet, 0 for any other error.
func serverCode(err error) uint16 {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return my.Number
	}
	return 0
}
